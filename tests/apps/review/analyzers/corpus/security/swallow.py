"""A login that trusts whatever goes wrong."""


def is_admin(user: object) -> bool:
    try:
        return user.role == "admin"
    except:
        return True
