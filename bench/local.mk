# sources of this room
EXTRA_DIST += %D%/measure.py
