"""Settings with real-looking values."""

AWS_ACCESS_KEY_ID = "AKIAZQ7SYNTH0KEY4TST"
DATABASE_PASSWORD = "hX9-kettle-Moon_27"
github = "ghp_SyntH3ticT0kenF0rC0rpusUse0nlyA1b2c3"
dsn = "postgresql://shop:s3cr3t-Moon27@db.internal:5432/shop"
api_key = "9f8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d"
