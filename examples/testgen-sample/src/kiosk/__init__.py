"""Prices, baskets and receipts of a kiosk."""
