# sources of this room
