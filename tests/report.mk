# tests of this room
