"""The one test the package has."""

from kiosk.prices import net


def test_net_takes_the_tax_off():
    """119 cents are 100 without tax."""
    assert net(119) == 100
