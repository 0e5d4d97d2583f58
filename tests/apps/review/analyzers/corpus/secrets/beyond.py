"""Credentials that look like words, and words that look like credentials."""

admin_password = "swordfish"
greeting = "correct horse battery staple"
revision = "4f2d9c1b7a3e8d6f5c0b2a1e9d8c7b6a5f4e3d2c"
session_cookie_name = "shop_session_v2"
default_credentials = ("guest", "guest")
