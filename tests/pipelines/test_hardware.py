"""Devices come from a file that people edit: what they get wrong is said."""

import pytest
from pydantic import ValidationError

from pipelines.hardware import Device, device, devices


def test_every_number_of_every_device_has_a_source():
    for each in devices().values():
        for source in (each.peak_source, each.price_source, each.utilisation_source):
            assert source.split(":")[0].split(",")[0] in {
                "measured", "assumption", "NVIDIA data sheet", "torchtitan",
            }  # fmt: skip


def test_an_unknown_device_gets_the_nearest_name():
    with pytest.raises(ValueError, match=r"no device 'h300'.*h200"):
        device("h300")


def test_a_range_the_wrong_way_round_is_refused():
    given = device("h100").model_dump() | {"utilisation_low": 0.5, "utilisation_high": 0.4}
    with pytest.raises(ValidationError, match=r"0\.5, above utilisation_high 0\.4"):
        Device.model_validate(given)
