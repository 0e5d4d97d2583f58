"""The run page: static modules, a style sheet and the HTML frame around them."""
