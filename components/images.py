"""Names of the container images stages run in. A deployment replaces them by digest in infra/."""

CPU = "python-clearstory-cpu:0.1.0"
"""Every stage that needs no accelerator. kfp.local wants the word `python` in an image's name."""
