"""A small shop front."""

import jinja2
from flask import Flask

app = Flask(__name__)
pages = jinja2.Environment(autoescape=False)


def main() -> None:
    app.run(debug=True)
