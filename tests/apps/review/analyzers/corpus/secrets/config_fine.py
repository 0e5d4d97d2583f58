"""Settings that only point to their secrets."""

import os

AWS_ACCESS_KEY_ID = os.environ["AWS_ACCESS_KEY_ID"]
DATABASE_PASSWORD = os.getenv("DATABASE_PASSWORD", "")
EXAMPLE_KEY = "AKIAIOSFODNN7EXAMPLE"
PLACEHOLDER_PASSWORD = "<your-password-here>"
TOKEN_URL = "https://login.example.com/oauth/token"
PASSWORD_FIELD = "password_confirmation"
SECRET_NAME = "prod/shop/database"
dsn = "postgresql://user:password@localhost:5432/shop"
token_prefix = "Bearer "
CACHE_KEY = "orders-by-customer-v2"
password_file = "/run/secrets/db_password"
