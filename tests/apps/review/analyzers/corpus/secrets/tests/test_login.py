"""Made-up passwords in tests are fine; a key with a known form is not."""

PASSWORD = "Cor7ect-horse-Battery"
LEAKED = "ghp_An0therSyntheticT0ken0000f0rTests12"


def test_login(client):
    assert client.login("ada", password="hunter2-Extra-77")
