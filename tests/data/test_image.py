"""Images: ``mx.image``, ``mx.nd.image`` and transforms. What MXNet 1.9.1 made is in
tests/recorded/images.npz.
"""

from __future__ import annotations

import json
import random
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from support import ROOT

RECORDED = np.load(ROOT / "tests" / "recorded" / "images.npz")
FILES = [name.removeprefix("file_") for name in RECORDED if name.startswith("file_")]
LOSSLESS = [name for name in FILES if name.startswith("png")]


def content(name: str) -> bytes:
    return RECORDED[f"file_{name}"].tobytes()


def difference(got, want) -> tuple[float, float]:
    assert got.shape == want.shape and got.dtype == want.dtype
    apart = np.abs(got.astype("float64") - want.astype("float64"))
    return apart.max(), apart.mean()


# ---- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", [0, 1])
@pytest.mark.parametrize("name", FILES)
def test_files_are_decoded_as_mxnet_decodes_them(mx, name: str, flag: int) -> None:
    want = RECORDED[f"pixels_{name}_{flag}"]
    got = mx.image.imdecode(content(name), flag=flag).asnumpy()
    most, mean = difference(got, want)
    if name in LOSSLESS:
        assert most == 0
    elif name == "jpeg_cmyk":
        assert most <= 6 and mean < 1.5
    else:
        assert most <= 4 and mean < 0.5


def test_decoding_takes_what_mxnet_takes(mx, tmp_path: Path) -> None:
    want = RECORDED["pixels_png_rgb_1"]
    file = content("png_rgb")
    path = tmp_path / "x.png"
    path.write_bytes(file)
    for image in (
        mx.image.imdecode(bytearray(file)),
        mx.image.imdecode(np.frombuffer(file, np.uint8)),
        mx.image.imdecode(mx.nd.array(np.frombuffer(file, np.uint8), dtype="uint8")),
        mx.image.imread(str(path)),
        mx.image.imread(path),
        mx.nd._internal._cvimdecode(file),
        mx.img.imread(str(path), flag=1, to_rgb=True),
    ):
        assert np.array_equal(image.asnumpy(), want)
    assert np.array_equal(mx.image.imdecode(file, to_rgb=0).asnumpy(), want[..., ::-1])
    out = mx.nd.zeros(want.shape, dtype="uint8")
    mx.image.imdecode(file, out=out)
    assert np.array_equal(out.asnumpy(), want)
    planes = mx.nd.imdecode(file, clip_rect=(3, 4, 9, 6))
    assert np.array_equal(planes.asnumpy(), want[4:6, 3:9, ::-1].transpose(2, 0, 1))
    out = mx.nd.zeros((2, 3, 2, 6))
    mean = mx.nd.ones((3, 2, 6))
    mx.nd._internal._imdecode(mean, 1, 3, 4, 9, 6, 3, len(file), str_img=file, out=out)
    assert np.array_equal(out.asnumpy()[1], planes.asnumpy() - 1) and not out[0].asnumpy().any()
    with pytest.raises(mx.base.MXNetError, match="size is 9999999, but str_img has"):
        mx.nd._internal._imdecode(None, 0, 0, 0, 0, 0, 3, 9999999, str_img=file)


def test_files_that_are_damaged_are_errors(mx, tmp_path: Path) -> None:
    for name in ("jpeg_420", "jpeg_progressive", "png_rgb"):
        file = content(name)
        for length in range(0, len(file), 7):
            with pytest.raises(mx.base.MXNetDataError, match="Invalid image file"):
                mx.image.imdecode(file[:length])
    with pytest.raises(mx.MXNetError, match="neither JPEG nor PNG"):
        mx.image.imdecode(b"something else")
    with pytest.raises(mx.MXNetError, match=r"neither JPEG nor PNG\. It is HTML"):
        mx.image.imdecode(b"<!DOCTYPE html><html>404</html>")
    for other in ("x.png", None, [1, 2]):
        with pytest.raises(
            ValueError, match=f"buf is of type {type(other).__name__}; expected the content of the file"
        ):
            mx.image.imdecode(other)
    path = tmp_path / "broken.jpg"
    path.write_bytes(content("jpeg_420")[:300])
    with pytest.raises(mx.base.MXNetDataError, match=r"broken.jpg.*truncated"):
        mx.image.imread(str(path))
    with pytest.raises(mx.base.MXNetDataError, match=r"nowhere.png"):
        mx.image.imread(str(tmp_path / "nowhere.png"))


def test_sizes_are_checked_before_memory_is_asked_for(mx) -> None:
    head = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", len(head)) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    with pytest.raises(mx.base.MXNetDataError, match="60000 x 60000"):
        mx.image.imdecode(b"\x89PNG\r\n\x1a\n" + chunk)


# ---- sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("resize_")])
def test_images_are_resized_as_mxnet_resizes_them(mx, name: str) -> None:
    _, image, w, h, interp = name.split("_")
    got = mx.image.imresize(mx.nd.array(RECORDED[image], dtype="uint8"), int(w), int(h), int(interp))
    most, _ = difference(got.asnumpy(), RECORDED[name])
    assert most <= (0 if interp in "01" else 1)


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("resizef_")])
def test_numbers_are_resized_as_mxnet_resizes_them(mx, name: str) -> None:
    _, image, w, h, interp = name.split("_")
    got = mx.image.imresize(mx.nd.array(RECORDED[image].astype("float32")), int(w), int(h), int(interp))
    most, _ = difference(got.asnumpy(), RECORDED[name])
    assert most <= 0.01


def resized_exactly(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Linear interpolation as OpenCV computes it bit for bit (``INTER_LINEAR_EXACT``)."""

    def taps(old: int, new: int) -> tuple[np.ndarray, np.ndarray]:
        at = (np.arange(new) + 0.5) * (1 / (new / old)) - 0.5
        low = np.floor(at).astype(int)
        share = np.rint((at - low) * 256).astype(int)
        return np.clip([low, low + 1], 0, old - 1), np.stack([256 - share, share])

    (above, below), down = taps(image.shape[0], height)
    (left, right), across = taps(image.shape[1], width)
    pixels = image.astype(int)
    rows = pixels[:, left] * across[0][:, None] + pixels[:, right] * across[1][:, None]
    sums = rows[above] * down[0][:, None, None] + rows[below] * down[1][:, None, None]
    return ((sums + (1 << 15)) >> 16).astype("uint8")


def test_interpolations_are_those_of_opencv_which_mxnet_passes_the_number_to(mx) -> None:
    pixels = RECORDED["pixels_png_rgb_1"]
    height, width = pixels.shape[:2]
    image = mx.nd.array(pixels, dtype="uint8")
    for high, wide in ((height * 2 + 3, width * 2 - 1), (height // 2, width // 3), (7, width + 5)):
        wanted = resized_exactly(pixels, high, wide)
        for made in (
            mx.image.imresize(image, wide, high, interp=5),
            mx.nd.image.resize(image, (wide, high), False, 5),
            mx.nd.image.resize(image.expand_dims(0), (wide, high), False, 5)[0],
        ):
            np.testing.assert_array_equal(made.asnumpy(), wanted)
        floats = image.astype("float32")
        linear = mx.image.imresize(floats, wide, high, interp=1).asnumpy()
        np.testing.assert_array_equal(mx.image.imresize(floats, wide, high, interp=5).asnumpy(), linear)
    for interp in (6, 7, 9, 10, -1):
        with pytest.raises(mx.MXNetError, match=f"interp is {interp}"):
            mx.image.imresize(image, 5, 6, interp=interp).asnumpy()
        # No pixels are made of an image that keeps its size.
        np.testing.assert_array_equal(mx.image.imresize(image, width, height, interp=interp).asnumpy(), pixels)


def test_functions_of_images_choose_an_interpolation(mx) -> None:
    image = mx.nd.array(RECORDED["pixels_png_rgb_1"], dtype="uint8")
    height, width = image.shape[:2]
    for sizes, chosen in (((2 * height, 2 * width), 2), ((4, 5), 3), ((2 * height, 5), 1)):
        wanted = mx.image.imresize(image, sizes[1], sizes[0], interp=chosen).asnumpy()
        made = mx.image.fixed_crop(image, 0, 0, width, height, sizes[::-1], interp=9)
        np.testing.assert_array_equal(made.asnumpy(), wanted)
    random.seed(3)
    drawn = [random.randint(0, 4) for _ in range(5)]
    random.seed(3)
    for chosen in drawn:
        wanted = mx.image.imresize(image, 5, 4, interp=chosen).asnumpy()
        np.testing.assert_array_equal(mx.image.fixed_crop(image, 0, 0, width, height, (5, 4), 10).asnumpy(), wanted)
    for interp in (5, 6, 8, -1):
        for call in (
            lambda interp: mx.image.resize_short(image, 4, interp),
            lambda interp: mx.image.fixed_crop(image, 0, 0, 4, 4, (2, 2), interp),
            lambda interp: mx.image.ForceResizeAug((4, 4), interp)(image),
        ):
            with pytest.raises(ValueError, match=f"Unknown interp method {interp}"):
                call(interp)


def test_batches_are_resized_like_single_images(mx) -> None:
    image = RECORDED["noise"]
    batch = mx.nd.array(np.stack([image, image[::-1]]), dtype="uint8")
    one = mx.nd.image.resize(batch[0], (9, 7)).asnumpy()
    both = mx.nd.image.resize(batch, (9, 7)).asnumpy()
    assert both.shape == (2, 7, 9, 3) and np.array_equal(both[0], one)
    assert np.array_equal(one, RECORDED["resize_noise_9_7_1"])
    assert mx.nd.image.resize(batch[0], 6, True).shape == (6, 7, 3)


def test_images_are_cut(mx) -> None:
    image = mx.nd.array(RECORDED["smooth"], dtype="uint8")  # 40 rows, 50 columns
    values = RECORDED["smooth"]
    assert np.array_equal(mx.image.fixed_crop(image, 3, 5, 20, 10).asnumpy(), values[5:15, 3:23])
    assert mx.image.fixed_crop(image, 3, 5, 20, 10, (10, 8)).shape == (8, 10, 3)
    middle, place = mx.image.center_crop(image, (20, 10))
    assert place == (15, 15, 20, 10) and np.array_equal(middle.asnumpy(), values[15:25, 15:35])
    larger, place = mx.image.center_crop(image, (100, 100))
    assert larger.shape == (100, 100, 3) and place == (5, 0, 40, 40)
    part, (x, y, w, h) = mx.image.random_crop(image, (20, 10))
    assert (w, h) == (20, 10) and np.array_equal(part.asnumpy(), values[y : y + h, x : x + w])
    sized, (x, y, w, h) = mx.image.random_size_crop(image, (16, 12), (0.2, 0.5), (0.9, 1.1))
    assert sized.shape == (12, 16, 3) and 0.15 < w * h / 2000 < 0.55
    assert mx.image.resize_short(image, 20).shape == (20, 25, 3)
    assert mx.image.scale_down((640, 480), (720, 120)) == (640, 106)


@pytest.mark.parametrize("kind", range(5))
def test_borders_are_those_of_mxnet(mx, kind: int) -> None:
    image = mx.nd.array(RECORDED["noise"][:4, :5], dtype="uint8")
    got = mx.image.copyMakeBorder(image, 2, 3, 1, 4, type=kind, values=(9, 8, 7))
    assert np.array_equal(got.asnumpy(), RECORDED[f"border_{kind}"])


@pytest.mark.parametrize("zoom", ["plain", "in", "out"])
def test_images_are_turned_as_mxnet_turns_them(mx, zoom: str) -> None:
    planes = np.ascontiguousarray(RECORDED["smooth"][:12, :16].transpose(2, 0, 1)).astype("float32") / 255
    keywords = {} if zoom == "plain" else {f"zoom_{zoom}": True}
    got = mx.image.imrotate(mx.nd.array(planes), 33.0, **keywords)
    assert difference(got.asnumpy(), RECORDED[f"rotate_{zoom}"])[0] < 1e-4
    both = mx.image.imrotate(mx.nd.array(np.stack([planes, planes])), mx.nd.array([33.0, 0.0]), **keywords)
    assert np.allclose(both[0].asnumpy(), got.asnumpy(), atol=1e-6)
    assert mx.image.random_rotate(mx.nd.array(planes), (-10, 10)).shape == planes.shape
    with pytest.raises(ValueError, match="cannot be both"):
        mx.image.imrotate(mx.nd.array(planes), 1, zoom_in=True, zoom_out=True)
    with pytest.raises(TypeError, match="float32"):
        mx.image.imrotate(mx.nd.array(planes, dtype="uint8"), 1)


# ---- colours -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("color_")])
def test_colours_are_changed_as_mxnet_changes_them(mx, name: str) -> None:
    _, op, dtype = name.split("_")
    image = mx.nd.array(RECORDED["smooth"][:20, :24], dtype=dtype)
    got = getattr(mx.nd.image, f"random_{op}")(image, 1.25, 1.25).asnumpy()
    assert difference(got, RECORDED[name])[0] <= (1 if dtype == "uint8" else 0.01)


def test_random_operators_follow_the_seed(mx) -> None:
    image = mx.nd.array(RECORDED["smooth"], dtype="float32")

    def draw():
        mx.random.seed(3)
        return [
            mx.nd.image.random_brightness(image, 0.5, 1.5).asnumpy(),
            mx.nd.image.random_color_jitter(image, 0.4, 0.4, 0.4, 0.1).asnumpy(),
            mx.nd.image.random_lighting(image, 0.3).asnumpy(),
            *(mx.nd.image.random_flip_left_right(image).asnumpy() for _ in range(8)),
        ]

    first, second = draw(), draw()
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    factor = first[0][20, 20, 0] / RECORDED["smooth"][20, 20, 0]
    assert 0.5 <= factor <= 1.5
    flips = {np.array_equal(made, RECORDED["smooth"]) for made in first[3:]}
    assert flips == {True, False}, "some are mirrored and some are not"


@pytest.mark.parametrize(("seed", "name"), [(3, "Hue"), (5, "Contrast"), (5, "Saturation")])
def test_augmenters_of_colour_are_those_of_mxnet(mx, seed: int, name: str) -> None:
    augmenter = getattr(mx.image, f"{name}JitterAug")(0.5)
    random.seed(seed)
    got = augmenter(mx.nd.array(RECORDED["smooth"][:20, :24].astype("float32")))
    assert difference(got.asnumpy(), RECORDED[f"{name.lower()}_aug"])[0] < 0.01


def test_the_usual_augmenters_are_those_of_mxnet(mx) -> None:
    augmenters = mx.image.CreateAugmenter(
        (3, 16, 20), resize=24, rand_crop=True, rand_resize=True, rand_mirror=True, mean=True, std=True, inter_method=1
    )
    random.seed(7)
    image = mx.nd.array(RECORDED["smooth"][:20, :24], dtype="uint8")
    for augmenter in augmenters:
        image = augmenter(image)
    assert difference(image.asnumpy(), RECORDED["create_augmenter"])[0] < 0.03
    assert [type(a).__name__ for a in augmenters] == [
        *("ResizeAug", "RandomSizedCropAug", "HorizontalFlipAug", "CastAug", "ColorNormalizeAug")
    ]
    assert json.loads(augmenters[0].dumps()) == ["resizeaug", {"size": 24, "interp": 1}]
    more = mx.image.CreateAugmenter(
        (3, 8, 8), brightness=0.1, contrast=0.1, saturation=0.1, hue=0.1, pca_noise=0.1, rand_gray=1
    )
    image = mx.nd.array(RECORDED["smooth"], dtype="uint8")
    for augmenter in more:
        image = augmenter(image)
    grey = image.asnumpy()
    assert grey.shape == (8, 8, 3) and np.allclose(grey[..., 0], grey[..., 2])


# ---- transforms ----------------------------------------------------------------------------------


def test_transforms_of_a_classifier(mx) -> None:
    """The transforms of GluonCV's classification demo, against their parts."""
    transforms = mx.gluon.data.vision.transforms
    image = mx.nd.array(RECORDED["smooth"], dtype="uint8")
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    made = transforms.Compose(
        [
            transforms.Resize(30, keep_ratio=True),
            transforms.CenterCrop(24),
            transforms.ToTensor(),
            transforms.Normalize(mean, std),
        ]
    )(image)
    cut = mx.image.center_crop(mx.nd.image.resize(image, 30, True), (24, 24))[0].asnumpy()
    want = (cut.transpose(2, 0, 1) / 255 - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    assert made.shape == (3, 24, 24) and np.allclose(made.asnumpy(), want, atol=1e-5)


def test_every_transform_gives_an_image(mx) -> None:
    transforms = mx.gluon.data.vision.transforms
    image = mx.nd.array(RECORDED["smooth"], dtype="uint8")
    sized = {
        "CropResize": transforms.CropResize(2, 3, 20, 10, (8, 6)),
        "RandomResizedCrop": transforms.RandomResizedCrop((8, 6)),
        "RandomCrop": transforms.RandomCrop((8, 6), pad=2),
        "CenterCrop": transforms.CenterCrop((8, 6)),
        "Resize": transforms.Resize((8, 6)),
    }
    for name, transform in sized.items():
        assert transform(image).shape == (6, 8, 3), name
    kept = [
        *(transforms.RandomFlipLeftRight(), transforms.RandomFlipTopBottom(), transforms.RandomBrightness(0.3)),
        *(transforms.RandomContrast(0.3), transforms.RandomSaturation(0.3), transforms.RandomHue(0.1)),
        *(transforms.RandomColorJitter(0.1, 0.1, 0.1, 0.1), transforms.RandomLighting(0.1), transforms.Cast("uint8")),
        transforms.RandomApply(transforms.RandomFlipLeftRight(), 0.5),
    ]
    for transform in kept:
        made = transform(image)
        assert made.shape == image.shape and made.dtype == np.uint8, type(transform).__name__
    planes = transforms.ToTensor()(image)
    for transform in (transforms.Rotate(20), transforms.RandomRotation((-20, 20))):
        assert transform(planes).shape == planes.shape
    with pytest.raises(TypeError, match="after ToTensor"):
        transforms.Rotate(20)(image)


def test_transforms_that_flip_take_nothing(mx) -> None:
    transforms = mx.gluon.data.vision.transforms
    for flip in (transforms.RandomFlipLeftRight, transforms.RandomFlipTopBottom):
        with pytest.raises(TypeError):
            flip(0.5)


def test_hybrid_transforms_are_graphs(mx) -> None:
    transforms = mx.gluon.data.vision.transforms
    net = mx.gluon.nn.HybridSequential()
    net.add(transforms.Resize((8, 6)), transforms.ToTensor(), transforms.Normalize(0.5, 0.25))
    image = mx.nd.array(RECORDED["smooth"], dtype="uint8")
    eager = net(image).asnumpy()
    net.hybridize()
    assert np.array_equal(net(image).asnumpy(), eager)
    symbol = net(mx.sym.Variable("data"))
    assert [node["op"] for node in json.loads(symbol.tojson())["nodes"]] == [
        *("null", "_image_resize", "_image_to_tensor", "_image_normalize")
    ]


# ---- data sets and iterators ---------------------------------------------------------------------


@pytest.fixture
def folder(mx, tmp_path: Path) -> Path:
    """Ten images in two directories, as a list, and as records."""
    lines = []
    with mx.recordio.MXIndexedRecordIO(str(tmp_path / "x.idx"), str(tmp_path / "x.rec"), "w") as records:
        for i in range(10):
            kind = ("cats", "dogs")[i % 2]
            (tmp_path / "images" / kind).mkdir(parents=True, exist_ok=True)
            image = np.full((12, 16, 3), 20 * i, dtype="uint8")
            packed = mx.recordio.pack_img(mx.recordio.IRHeader(0, float(i), i, 0), image, 3, ".png")
            records.write_idx(i, packed)
            (tmp_path / "images" / kind / f"{i}.png").write_bytes(mx.recordio.unpack(packed)[1])
            lines.append(f"{i}\t{i}\timages/{kind}/{i}.png\n")
    (tmp_path / "x.lst").write_text("".join(lines))
    return tmp_path


def test_images_are_packed_and_unpacked(mx) -> None:
    image = RECORDED["noise"]
    for channels in (image, image[..., 0]):
        header, back = mx.recordio.unpack_img(
            mx.recordio.pack_img((0, 3.0, 1, 0), channels, 9, ".png"), iscolor=int(channels.ndim == 3)
        )
        assert header.label == 3.0 and np.array_equal(back, channels)
    smooth = RECORDED["smooth"][:20, :24]
    _, back = mx.recordio.unpack_img(mx.recordio.pack_img((0, 3.0, 1, 0), smooth))
    assert difference(back, smooth)[1] < 4
    with pytest.raises(mx.MXNetError, match=r"expected .jpg or .png"):
        mx.recordio.pack_img((0, 3.0, 1, 0), smooth, img_fmt=".webp")


def test_images_are_unpacked_as_they_are_stored(mx) -> None:
    shapes = {"jpeg_grey": (37, 45), "png_grey": (37, 45), "png_bits": (37, 45), "jpeg_exif_6": (37, 45, 3)}
    for name in ("jpeg_420", "jpeg_cmyk", "jpeg_jfif_exif_6", "png_rgb", "png_palette", *shapes):
        record = mx.recordio.pack((0, 1.0, 0, 0), content(name))
        assert mx.recordio.unpack_img(record)[1].shape == shapes.get(name, (37, 45, 3)), name
        turned = (45, 37, 3) if name == "jpeg_exif_6" else (37, 45, 3)
        assert mx.recordio.unpack_img(record, 1)[1].shape == turned, name


def test_data_sets_of_images(mx, folder: Path) -> None:
    vision = mx.gluon.data.vision
    by_folder = vision.ImageFolderDataset(str(folder / "images"))
    assert by_folder.synsets == ["cats", "dogs"] and len(by_folder) == 10
    image, label = by_folder[6]
    assert label == 1 and image.shape == (12, 16, 3) and image.asnumpy().max() == 60
    by_record = vision.ImageRecordDataset(str(folder / "x.rec"))
    image, label = by_record[7]
    assert label == 7.0 and image.asnumpy().min() == 140
    by_list = vision.ImageListDataset(str(folder), "x.lst", flag=0)
    image, label = by_list[4]
    assert label == 4.0 and image.shape == (12, 16, 1)
    given = vision.ImageListDataset(str(folder), [(1.0, "images/dogs/3.png"), [2, 3, "images/cats/4.png"]])
    assert given[0][1] == 1.0 and given[1][1].tolist() == [2, 3]
    loader = mx.gluon.data.DataLoader(
        by_record.transform_first(mx.gluon.data.vision.transforms.ToTensor()), 5, num_workers=2
    )
    batches = list(loader)
    assert [batch[0].shape for batch in batches] == [(5, 3, 12, 16)] * 2
    assert batches[1][1].asnumpy().tolist() == [5, 6, 7, 8, 9]
    with pytest.raises(mx.MXNetError, match="there is no directory"):
        vision.ImageFolderDataset(str(folder / "nothing"))
    (folder / "x.lst").write_text("1 2 3\n")
    with pytest.raises(mx.MXNetError, match=r"x.lst, line 1"):
        vision.ImageListDataset(str(folder), "x.lst")


def labels(iterator) -> list[tuple[list[float], int]]:
    return [(batch.label[0].asnumpy().tolist(), batch.pad) for batch in iterator]


def test_image_iter_reads_records_lists_and_files(mx, folder: Path) -> None:
    def make(**keywords):
        return mx.image.ImageIter(4, (3, 8, 8), **keywords)

    records = {"path_imgrec": str(folder / "x.rec")}
    index = {"path_imgidx": str(folder / "x.idx")}
    files = {"path_imglist": str(folder / "x.lst"), "path_root": str(folder)}
    padded = [([0, 1, 2, 3], 0), ([4, 5, 6, 7], 0), ([8, 9, 0, 1], 2)]
    for keywords in (records, {**records, **index}, files):
        iterator = make(**keywords)
        assert labels(iterator) == padded
        iterator.reset()
        batch = next(iterator)
        assert batch.data[0].shape == (4, 3, 8, 8) and batch.data[0].asnumpy()[3].max() == 60
    assert iterator.provide_data == [("data", (4, 3, 8, 8))] and iterator.provide_label == [("softmax_label", (4,))]
    assert len(labels(make(**records, last_batch_handle="discard"))) == 2
    rolling = make(**records, last_batch_handle="roll_over")
    assert labels(rolling) == padded[:2]
    rolling.reset()
    assert labels(rolling) == [([8, 9, 0, 1], 2), ([2, 3, 4, 5], 0), ([6, 7, 8, 9], 0)]
    part = make(**records, **index, part_index=1, num_parts=2)
    assert labels(part)[0] == ([5, 6, 7, 8], 0)
    shuffled = make(**records, **index, shuffle=True)
    assert sorted([label for found, _ in labels(shuffled) for label in found][:10]) == list(range(10))
    listed = make(imglist=[[3, "images/cats/0.png"], [5, "images/dogs/1.png"]], path_root=str(folder))
    assert labels(listed) == [([3, 5, 3, 5], 2)]
    with pytest.raises(AssertionError, match="need the index"):
        make(**records, shuffle=True)


def test_a_broken_image_is_named_and_the_others_are_read(mx, folder: Path) -> None:
    (folder / "images" / "dogs" / "5.png").write_bytes(b"\x89PNG nothing")
    iterator = mx.image.ImageIter(2, (3, 8, 8), path_imglist=str(folder / "x.lst"), path_root=str(folder))
    assert [next(iterator).label[0].asnumpy().tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(mx.base.MXNetDataError, match=r"Broken image filename: images/dogs/5.png"):
        next(iterator)
    assert next(iterator).label[0].asnumpy().tolist() == [4, 6]
    iterator.reset()
    assert next(iterator).label[0].asnumpy().tolist() == [0, 1]


def test_an_image_iterator_begins_again_without_reset(mx, tmp_path: Path) -> None:
    # As in MXNet: unless its last batch was filled up, or left out.
    (tmp_path / "0.png").write_bytes(content(LOSSLESS[0]))
    images = [[float(label), "0.png"] for label in range(6)]

    def passes(count: int, handle: str) -> list:
        iterator = mx.image.ImageIter(
            count, (3, 4, 4), imglist=images, path_root=str(tmp_path), last_batch_handle=handle
        )
        return [[batch.label[0].asnumpy().tolist() for batch in iterator] for _ in range(3)]

    halves, four = [[0, 1, 2], [3, 4, 5]], [0, 1, 2, 3]
    assert passes(3, "pad") == passes(3, "roll_over") == [halves, halves, halves]
    assert passes(3, "discard") == [halves, [], []]
    assert passes(4, "pad") == [[four, [4, 5, 0, 1]], [], []]
    assert passes(4, "discard") == [[four], [], []]
    assert passes(4, "roll_over") == [[four], [[4, 5, 0, 1], [2, 3, 4, 5]], [four]]
