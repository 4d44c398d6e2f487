"""Sealed hours as Parquet files, in a directory or in S3-compatible storage."""
