"""Static pages over all sites and campaigns of a results folder: the report's templates, in a folder of their own."""
