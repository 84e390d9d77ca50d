"""Texts as word ids: encoding them, keeping them in the cache or one file, reading them, batching them."""
