"""Old encryption."""

from Crypto.Cipher import AES, DES
from cryptography.hazmat.primitives.asymmetric import rsa


def old(key: bytes, data: bytes) -> bytes:
    return DES.new(key, DES.MODE_CBC).encrypt(data)


def block(key: bytes, data: bytes) -> bytes:
    return AES.new(key, AES.MODE_GCM).encrypt(data)


def pair() -> object:
    return rsa.generate_private_key(public_exponent=65537, key_size=1024)
