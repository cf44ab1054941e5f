"""Records for people: tables, one record, comparisons, pages and the report."""
