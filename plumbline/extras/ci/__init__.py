"""Pipelines that gate a merge request and measure every night, for GitLab CI and GitHub Actions."""
