# SPDX-License-Identifier: Apache-2.0
"""What pytest runs: many small tests with fixtures."""

import pytest


@pytest.fixture
def numbers():
    return list(range(20))


@pytest.mark.parametrize("number", range(300))
def test_sum(numbers, number):
    assert sum(n * number for n in numbers) == number * sum(numbers)
