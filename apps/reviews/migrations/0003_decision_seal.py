"""Decisions carry a seal. Those made before it have none and count for nothing; their requests are decided again."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("reviews", "0002_initial"),
    ]

    operations = [
        migrations.AddField("decision", "seal", models.CharField(blank=True, default="", max_length=64)),
    ]
