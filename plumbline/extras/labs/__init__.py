"""The experiments of the teaching documents, as their readers know them: question, table, lesson."""
