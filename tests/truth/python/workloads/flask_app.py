# SPDX-License-Identifier: Apache-2.0
"""A Flask application: a page made of a template, and JSON."""

import flask

application = flask.Flask(__name__)
PAGE = "{% for row in rows %}<p>{{ row|upper }}</p>{% endfor %}"


@application.route("/")
def page():
    rows = sorted(["row %d" % i for i in range(50)], key=lambda row: row[::-1])
    return flask.render_template_string(PAGE, rows=rows) + flask.json.dumps(
        {row: len(row) for row in rows})
