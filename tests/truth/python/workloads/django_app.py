# SPDX-License-Identifier: Apache-2.0
"""A Django application in one file: a page made of a template."""

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.template import Context, Engine
from django.urls import path

settings.configure(ROOT_URLCONF=__name__, SECRET_KEY="x", ALLOWED_HOSTS=["*"],
                   MIDDLEWARE=["django.middleware.common.CommonMiddleware"])
PAGE = Engine().from_string(
    "{% for row in rows %}<p>{{ row.name|upper }} {{ row.number }}</p>"
    "{% endfor %}")


def page(request):
    rows = [{"name": "row %d" % i, "number": i} for i in range(50)]
    return HttpResponse(PAGE.render(Context({"rows": sorted(
        rows, key=lambda row: -row["number"])})))


urlpatterns = [path("", page)]
application = get_wsgi_application()
