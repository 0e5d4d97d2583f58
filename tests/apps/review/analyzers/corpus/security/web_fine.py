"""A small shop front, escaped."""

import jinja2
from flask import Flask

app = Flask(__name__)
pages = jinja2.Environment(autoescape=True)


def main() -> None:
    app.run(host="127.0.0.1", debug=False)
