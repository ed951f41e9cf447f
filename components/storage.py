"""Where an S3 store is and which environment variables hold its keys. No secret is ever in here."""

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from model.config import Config


class StorageConfig(Config):
    """One S3 service. Travels in settings, so that keys stay in the environment by reference."""

    endpoint_url: str = ""
    """Address of a service that is not Amazon's; empty: Amazon's own, by region."""

    region: str = "us-east-1"

    path_style: bool = True
    """Buckets as the first part of the path, as most services outside Amazon want it."""

    access_key_variable: str = "AWS_ACCESS_KEY_ID"
    secret_key_variable: str = "AWS_SECRET_ACCESS_KEY"
    session_token_variable: str = "AWS_SESSION_TOKEN"
    """Need not be set."""

    parallel_reads: PositiveInt = 16
    """Ranges asked for at once."""

    attempts: PositiveInt = 6
    """Tries of one read: a busy service, a broken connection and a cut body are tried again."""

    first_wait_seconds: PositiveFloat = 0.2
    longest_wait_seconds: PositiveFloat = 20.0
    """Waits double from the first to the longest, each shortened at random by up to a half."""

    timeout_seconds: PositiveFloat = 30.0

    coalesce_bytes: NonNegativeInt = 65_536
    """Ranges of one object that lie no further apart are read as one."""
