"""Texts as word ids: encoded, kept in the cache or in one file, opened again, and made into batches."""
