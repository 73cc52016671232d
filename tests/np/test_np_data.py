"""The numpy interface and data: images, data sets, loaders and embeddings make arrays of ``mx.np``
while it is on, as in MXNet 1.9.1.
"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def numpy_interface(mx: Any) -> Any:
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


@pytest.fixture
def file(mx: Any, tmp_path: Path) -> Path:
    """A PNG of 12 x 16 pixels in a folder of one class."""
    pixels = np.arange(12 * 16 * 3).reshape(12, 16, 3) % 251
    (tmp_path / "images" / "cat").mkdir(parents=True)
    path = tmp_path / "images" / "cat" / "0.png"
    packed = mx.recordio.pack_img(mx.recordio.IRHeader(0, 1.0, 0, 0), pixels.astype("uint8"), img_fmt=".png")
    path.write_bytes(mx.recordio.unpack(packed)[1])
    return path


def records(mx: Any, file: Path, label: Any) -> dict[str, str]:
    paths = {"path_imgrec": str(file.with_suffix(".rec")), "path_imgidx": str(file.with_suffix(".idx"))}
    writer = mx.recordio.MXIndexedRecordIO(paths["path_imgidx"], paths["path_imgrec"], "w")
    for place in range(3):
        header = mx.recordio.IRHeader(0, label, place, 0)
        writer.write_idx(place, mx.recordio.pack(header, file.read_bytes()))
    writer.close()
    return paths


def is_np(mx: Any, *arrays: Any) -> bool:
    return all(type(array) is mx.np.ndarray for array in arrays)


def test_functions_of_images(mx: Any, file: Path) -> None:
    image = mx.image
    read = image.imread(str(file))
    assert is_np(mx, read, image.imdecode(file.read_bytes()), image.imresize(read, 4, 3), image.resize_short(read, 6))
    assert is_np(mx, image.center_crop(read, (20, 20))[0], image.random_size_crop(read, (3, 3), 0.5, (0.7, 1.3))[0])
    assert mx.np.expand_dims(read, 0).shape == (1, 12, 16, 3)
    mx.npx.reset_np()
    assert type(image.imread(str(file))) is mx.nd.NDArray


def test_augmenters_keep_the_class_of_an_image(mx: Any, file: Path) -> None:
    settings = {"rand_mirror": True, "mean": True, "std": True, "brightness": 0.1, "contrast": 0.1, "saturation": 0.1}
    augmenters = mx.image.CreateAugmenter((3, 8, 8), 10, **settings, hue=0.1, pca_noise=0.1, rand_gray=1)
    augmenters.append(mx.image.HorizontalFlipAug(1))
    made = mx.image.imread(str(file))
    for augment in augmenters:
        made = augment(made)
        assert is_np(mx, made)
    made = mx.nd.array(mx.image.imread(str(file)).asnumpy(), dtype="uint8")
    for augment in augmenters[1:]:
        made = augment(made)
        assert type(made) is mx.nd.NDArray


def test_iterators_over_images(mx: Any, file: Path) -> None:
    paths = records(mx, file, 1.0)
    batch = next(mx.image.ImageIter(2, (3, 8, 8), **paths, mean=True))
    assert is_np(mx, *batch.data, *batch.label)
    listed = mx.image.ImageIter(2, (3, 8, 8), imglist=[[1.0, file.name]], path_root=str(file.parent))
    assert is_np(mx, listed.next_sample()[0])
    found = records(mx, file, [2, 5, 0, 0.1, 0.1, 0.9, 0.9])
    changes = {"rand_crop": 1, "rand_pad": 1, "rand_mirror": True, "mean": True, "std": True}
    batch = next(mx.image.ImageDetIter(2, (3, 8, 8), **found, **changes))
    assert is_np(mx, *batch.data, *batch.label)


def test_data_sets_of_images(mx: Any, file: Path, tmp_path: Path) -> None:
    vision = mx.gluon.data.vision
    assert is_np(mx, vision.ImageFolderDataset(str(tmp_path / "images"))[0][0])
    assert is_np(mx, vision.ImageRecordDataset(records(mx, file, 1.0)["path_imgrec"])[0][0])
    for name, head, size in (("images-idx3", (0x803, 2, 28, 28), 2 * 784), ("labels-idx1", (0x801, 2), 2)):
        content = struct.pack(f">{len(head)}I", *head) + bytes(size)
        (tmp_path / f"t10k-{name}-ubyte.gz").write_bytes(gzip.compress(content))
    image, label = vision.MNIST(str(tmp_path), train=False)[1]
    assert is_np(mx, image, label) and label.dtype == np.int32 and label.shape == ()


def test_batches_and_embeddings(mx: Any, tmp_path: Path) -> None:
    batch = mx.gluon.data.dataloader.default_batchify_fn
    assert is_np(mx, batch([1, 2]), batch([mx.np.ones((2,)), mx.np.zeros((2,))]), *batch([(1, 2.0), (3, 4.0)]))
    path = tmp_path / "vectors.txt"
    path.write_text("a 1 2\nb 3 4\n")
    vectors = mx.contrib.text.embedding.CustomEmbedding(str(path))
    assert is_np(mx, vectors.idx_to_vec, vectors.get_vecs_by_tokens("a"), vectors.get_vecs_by_tokens(["b", "c"]))
    assert vectors.get_vecs_by_tokens(["b", "c"]).asnumpy().tolist() == [[3, 4], [0, 0]]
    vectors.update_token_vectors("a", mx.np.array([5.0, 6.0]))
    assert vectors.idx_to_vec[1].asnumpy().tolist() == [5, 6]


class Modes:
    """A data set of the switches of the numpy interface, as a worker sees them."""

    def __init__(self, mx: Any) -> None:
        self._mx = mx

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: int) -> tuple[int, int]:
        return int(self._mx.util.is_np_shape()), int(self._mx.util.is_np_array())


@pytest.mark.parametrize("workers", [{"num_workers": 0}, {"num_workers": 1}, {"num_workers": 1, "thread_pool": True}])
def test_workers_use_the_interface_that_was_on_for_their_loader(mx: Any, workers: dict[str, Any]) -> None:
    def seen(loader: Any) -> list[Any]:
        return [part.asnumpy().tolist() for batch in loader for part in batch]

    loader = mx.gluon.data.DataLoader(Modes(mx), 2, **workers)
    assert seen(loader) == [[1, 1], [1, 1]]
    mx.npx.reset_np()
    assert seen(mx.gluon.data.DataLoader(Modes(mx), 2, **workers)) == [[0, 0], [0, 0]]


def test_batches_that_are_split_keep_their_type(mx: Any) -> None:
    for dtype in ("float64", "int64", "float32"):
        for contexts in ([mx.cpu(0)], [mx.cpu(0), mx.cpu(1)]):
            parts = mx.gluon.utils.split_and_load(np.arange(4, dtype=dtype), contexts)
            assert is_np(mx, *parts) and {part.dtype for part in parts} == {np.dtype(dtype)}


def test_images_of_np_are_turned(mx: Any) -> None:
    image = mx.np.arange(48.0).reshape(3, 4, 4)
    turned = mx.image.imrotate(image, 30)
    assert is_np(mx, turned, mx.image.imrotate(mx.np.stack([image] * 2), mx.np.array([30.0, 2.0])))
    expected = mx.image.imrotate(image.as_nd_ndarray(), 30)
    assert type(expected) is mx.nd.NDArray
    assert np.array_equal(turned.asnumpy(), expected.asnumpy())
    rotate = mx.gluon.data.vision.transforms.Rotate(30)
    assert np.array_equal(rotate(image).asnumpy(), expected.asnumpy())


def test_functions_that_make_batches_make_arrays_of_np(mx: Any) -> None:
    batchify = mx.gluon.data.batchify
    for make in (batchify.Stack(), batchify.Stack("float64"), batchify.Pad()):
        assert is_np(mx, make([mx.np.ones(2), mx.np.ones(2)]), make([[1, 2], [3, 4]]))
    assert is_np(mx, *batchify.Append()([[1, 2], [3, 4]]))
