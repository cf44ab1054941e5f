"""The launch driver: runs inside the job, starts every launch of a variant and writes its record."""
