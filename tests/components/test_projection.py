"""What is near stays near, and the same vectors make the same map."""

import numpy as np
import pytest

from components.projection import project


def three_clouds(n_each=7, width=12):
    rng = np.random.default_rng(3)
    centres = np.eye(3, width, dtype=np.float32)
    noise = 0.05 * rng.standard_normal((3, n_each, width))
    return (centres[:, None] + noise).reshape(-1, width).astype(np.float32)


def distances_within_and_between(points_N2, n_each=7):
    clouds = points_N2.reshape(3, n_each, 2)
    middles = clouds.mean(axis=1)
    within = np.linalg.norm(clouds - middles[:, None], axis=-1).max()
    between = min(np.linalg.norm(middles[i] - middles[i - 1]) for i in range(3))
    return within, between


def test_clouds_stay_apart():
    within, between = distances_within_and_between(project(three_clouds(), "pca", 0).points_N2)
    assert between > 3 * within


def test_points_fill_the_unit_square():
    points_N2 = project(three_clouds(), "pca", 0).points_N2
    assert points_N2.min(axis=0).tolist() == [0.0, 0.0]
    assert points_N2.max(axis=0).tolist() == [1.0, 1.0]


def test_neighbours_kept_by_hand():
    """An arc loses nothing in a plane; a cloud of forty directions loses much."""
    angle = np.linspace(0.0, 1.2, 20)
    line = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    assert project(line, "pca", 0).kept == pytest.approx(1.0)
    scattered = np.random.default_rng(0).standard_normal((60, 40)).astype(np.float32)
    assert project(scattered, "pca", 0).kept < 0.6


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_handful_of_vectors_is_placed_by_pca_and_says_so(n):
    placed = project(three_clouds()[:n], "umap", 0)
    assert placed.method == "pca"
    assert placed.points_N2.shape == (n, 2)
    assert np.isfinite(placed.points_N2).all()


def test_equal_vectors_share_a_point():
    same = np.ones((9, 4), dtype=np.float32)
    assert np.ptp(project(same, "umap", 0).points_N2, axis=0).tolist() == [0.0, 0.0]


@pytest.mark.slow
def test_umap_keeps_clouds_apart_and_gives_the_same_points_twice():
    vectors_ND = three_clouds()
    first, second = project(vectors_ND, "umap", 5), project(vectors_ND, "umap", 5)
    assert first.method == "umap"
    assert first.points_N2.tobytes() == second.points_N2.tobytes()
    within, between = distances_within_and_between(first.points_N2)
    assert between > within


@pytest.mark.slow
def test_umap_places_equal_vectors_too():
    twice = np.repeat(three_clouds(), 2, axis=0)
    placed = project(twice, "umap", 0)
    assert placed.method == "umap"
    assert np.isfinite(placed.points_N2).all()
