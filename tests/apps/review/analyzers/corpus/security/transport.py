"""Talking to partners."""

import ssl
import urllib.request

import paramiko
import requests


def prices(url: str) -> bytes:
    return requests.get(url, verify=False, timeout=5).content


def stock(url: str) -> bytes:
    return requests.get(url).content


def fetch(url: str) -> bytes:
    context = ssl._create_unverified_context()
    return urllib.request.urlopen("https://partner.example/" + url, context=context).read()


def shell(host: str) -> paramiko.SSHClient:
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
    client.connect(host)
    return client
