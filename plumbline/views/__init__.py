"""Records for people: tables, one record, differences."""
