"""Whatever is wrong with a file or a call, it is an MXNetError that names the thing, never a crash
or a hang.
"""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest

from support import DIGITS, block_of, digits, last_json, run_python, tiny_model

SYMBOL = DIGITS / "digits_cnn-symbol.json"
PARAMS = DIGITS / "digits_cnn-0000.params"


@pytest.fixture
def net(mx):
    return block_of(mx)


@pytest.fixture
def image(mx):
    return mx.nd.array(digits(2)[0])


def message_of(mx, call) -> str:
    """The text of the MXNetError that `call` must end in, at the call or when its result is
    awaited.
    """
    with pytest.raises(mx.base.MXNetError) as caught:
        result = call()
        for array in result if isinstance(result, (list, tuple)) else [result]:
            if hasattr(array, "wait_to_read"):
                array.wait_to_read()
    return str(caught.value)


# ---- files -------------------------------------------------------------------------------------


def test_a_missing_file_is_named(mx, tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere-0000.params")
    assert "nowhere-0000.params" in message_of(mx, lambda: mx.nd.load(missing))
    assert "nowhere" in message_of(mx, lambda: mx.sym.load(str(tmp_path / "nowhere-symbol.json")))
    assert "nowhere" in message_of(mx, lambda: mx.gluon.SymbolBlock.imports(str(SYMBOL), ["data"], missing))
    assert "nowhere" in message_of(mx, lambda: mx.gluon.SymbolBlock.imports(missing, ["data"], str(PARAMS)))
    assert "nowhere" in message_of(mx, lambda: mx.model.load_checkpoint(str(tmp_path / "nowhere"), 0))


def test_a_missing_file_is_a_file_not_found_error_as_well(mx, tmp_path: Path) -> None:
    missing, pixels = str(tmp_path / "nowhere"), {"data_shape": (1,), "batch_size": 1}
    for call in (
        lambda: mx.nd.load(missing),
        lambda: mx.nd.save(f"{missing}/of.params", mx.nd.ones(1)),
        lambda: mx.sym.load(missing),
        lambda: mx.gluon.nn.Dense(1).load_parameters(missing),
        lambda: mx.mod.Module.load(missing, 0),
        lambda: mx.recordio.MXRecordIO(missing, "r"),
        lambda: mx.image.imread(missing),
        lambda: mx.io.CSVIter(data_csv=missing, **pixels),
        lambda: mx.io.LibSVMIter(data_libsvm=missing, **pixels),
        lambda: mx.gluon.data.vision.MNIST(missing),
        lambda: mx.gluon.contrib.data.text.WikiText2(missing),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            call()
        # Programs written for MXNet expect the first, programs that handle any bad file the second.
        assert isinstance(caught.value, mx.base.MXNetError)
        assert isinstance(caught.value, mx.base.MXNetDataError)
        assert (caught.value.kind, caught.value.errno) == ("file_not_found", errno.ENOENT)
        assert "nowhere" in str(caught.value)


def test_a_file_that_is_there_and_cannot_be_read_is_no_file_not_found_error(mx, tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    for path in (tmp_path, tmp_path / "empty"):
        with pytest.raises(mx.base.MXNetDataError) as caught:
            mx.nd.load(str(path))
        assert not isinstance(caught.value, OSError)


def test_a_directory_in_place_of_a_file_is_named(mx, tmp_path: Path) -> None:
    for load in (mx.nd.load, mx.sym.load):
        assert str(tmp_path) in message_of(mx, lambda load=load: load(str(tmp_path)))


def test_files_in_each_others_place_are_refused(mx) -> None:
    message_of(mx, lambda: mx.nd.load(str(SYMBOL)))
    message_of(mx, lambda: mx.sym.load(str(PARAMS)))


@pytest.mark.parametrize("content", [b"", b"\0", b"{}", b"[]", b"null", b"\xff" * 64, b"{" * 100_000, b'{"nodes": []}'])
def test_garbage_is_refused(mx, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "garbage"
    path.write_bytes(content)
    message_of(mx, lambda: mx.sym.load(str(path)))
    message_of(mx, lambda: mx.nd.load(str(path)))


# Runs every damaged version of a small model; memory is limited to what is in use after the
# undamaged model has run, the size of the file and 64 MB.
DAMAGE = """
import json, os, resource, sys
import numpy as np
import mxrt as mx

folder, what = sys.argv[1], sys.argv[2]
files = {"json": folder + "/tiny-symbol.json", "params": folder + "/tiny-0000.params"}
good = open(files[what], "rb").read()
x = np.load(folder + "/x.npy")

def use(symbol, params):
    net = mx.gluon.SymbolBlock.imports(symbol, ["data"], params)
    y = net(mx.nd.array(x))
    return [a.asnumpy() for a in (y if isinstance(y, (list, tuple)) else [y])]

want = np.load(folder + "/y.npy")
assert np.allclose(use(files["json"], files["params"])[0], want, rtol=1e-4, atol=1e-5)
with open("/proc/self/statm") as f:
    used = int(f.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + len(good) + (64 << 20),) * 2)

path = folder + "/damaged"
tally = {"tried": 0, "errors": 0, "answers": 0}
wrong = []

def attempt(data, how):
    with open(path, "wb") as f:
        f.write(data)
    tally["tried"] += 1
    print(how, file=sys.stderr, flush=True)
    try:
        use(*((path, files["params"]) if what == "json" else (files["json"], path)))
        tally["answers"] += 1
    except mx.base.MXNetError as e:
        tally["errors"] += 1
        if not str(e).strip():
            wrong.append(how + ": an error without a text")
        if isinstance(e, MemoryError):
            wrong.append(f"{how}: asked for too much memory: {e}")
    except BaseException as e:
        wrong.append(f"{how}: {type(e).__name__}: {e}")

for cut in range(len(good)):
    attempt(good[:cut], f"cut at {cut}")
masks = [int(mask) for mask in sys.argv[3].split()]
for at in range(len(good)):
    for mask in masks:
        attempt(good[:at] + bytes([good[at] ^ mask]) + good[at + 1:], f"byte {at} xor {mask:#04x}")
assert np.allclose(use(files["json"], files["params"])[0], want, rtol=1e-4, atol=1e-5)
print(json.dumps({**tally, "wrong": wrong[:20], "wrong_count": len(wrong)}))
"""


@pytest.mark.timeout(400)
@pytest.mark.parametrize("what", ["params", "json"])
@pytest.mark.parametrize(
    "masks", [(0x01, 0x10, 0x80, 0xFF), pytest.param((0x02, 0x04, 0x08, 0x20, 0x40), marks=pytest.mark.slow)]
)
def test_every_cut_and_every_flipped_byte_of_a_small_model_is_an_error_or_an_answer(
    tmp_path: Path, what: str, masks: tuple[int, ...]
) -> None:
    symbol, params, x, y = tiny_model()
    assert len(symbol) <= 2048
    assert len(params) <= 2048
    (tmp_path / "tiny-symbol.json").write_bytes(symbol)
    (tmp_path / "tiny-0000.params").write_bytes(params)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    # One malloc arena: each further one would reserve 64 MB of addresses.
    arguments = [str(tmp_path), what, " ".join(map(str, masks))]
    result = run_python(DAMAGE, *arguments, timeout=360, env={"MALLOC_ARENA_MAX": "1"})
    attempts = [line for line in result.stderr.splitlines() if line.startswith(("cut at", "byte "))]
    last = attempts[-1] if attempts else "the undamaged model"
    assert result.returncode == 0, f"status {result.returncode} at '{last}'\n{result.stderr[-3000:]}"
    said = last_json(result)
    assert not said["wrong"], f"{said['wrong_count']} of {said['tried']}: {said['wrong']}"
    size = len(params) if what == "params" else len(symbol)
    assert said["tried"] == (1 + len(masks)) * size
    assert said["errors"] > size // 2


def test_a_symbol_file_that_is_no_json_is_named(mx, tmp_path: Path) -> None:
    path = tmp_path / "half-symbol.json"
    path.write_bytes(SYMBOL.read_bytes()[:300])
    assert "half-symbol.json" in message_of(mx, lambda: mx.sym.load(str(path)))
    assert "half-symbol.json" in message_of(mx, lambda: mx.gluon.SymbolBlock.imports(str(path), ["data"], str(PARAMS)))


# ---- parameters --------------------------------------------------------------------------------


def test_missing_extra_and_misshapen_parameters_are_all_named_in_one_message(mx, tmp_path: Path) -> None:
    saved = mx.nd.load(str(PARAMS))
    weights = sorted(name for name in saved if name.endswith("weight"))
    gone, misshapen = [*weights[:1], sorted(name for name in saved if name.startswith("aux:"))[0]], weights[-1]
    for name in gone:
        del saved[name]
    saved[misshapen] = mx.nd.zeros((3, 5))
    saved["arg:nobody_asked_for_this"] = mx.nd.zeros((2,))
    path = str(tmp_path / "wrong.params")
    mx.nd.save(path, saved)
    text = message_of(mx, lambda: mx.gluon.SymbolBlock.imports(str(SYMBOL), ["data"], path)(mx.nd.zeros((1, 1, 8, 8))))
    for name in [*gone, misshapen, "arg:nobody_asked_for_this"]:
        assert name.split(":")[1] in text, f"{name} is not named in: {text}"
    assert "(3, 5)" in text, "the shape found is not named: " + text


def test_a_wrong_input_name_is_named(mx, image) -> None:
    text = message_of(mx, lambda: mx.gluon.SymbolBlock.imports(str(SYMBOL), ["dada"], str(PARAMS))(image))
    assert "dada" in text
    assert "data" in text.replace("dada", ""), "the right name is not offered: " + text
    assert text.index("input_names") < text.index("The file contains"), "what to do comes after a long list: " + text


# ---- calls -------------------------------------------------------------------------------------


def test_a_wrong_number_of_inputs_is_refused(mx, net, image) -> None:
    for call in (lambda: net(image, image), lambda: net(image, image, image)):
        with pytest.raises((mx.base.MXNetError, TypeError, ValueError)):
            call().wait_to_read()


def test_no_input_at_all_is_refused_also_after_a_good_call(mx, net, image) -> None:
    net(image).wait_to_read()
    with pytest.raises((mx.base.MXNetError, TypeError, ValueError)):
        net().wait_to_read()


@pytest.mark.parametrize("shape", [(8, 8), (1, 8, 8), (1, 1, 1, 8, 8), (64,), (1,)])
def test_a_wrong_rank_is_refused_with_the_shape(mx, net, shape: tuple[int, ...]) -> None:
    text = message_of(mx, lambda: net(mx.nd.zeros(shape)))
    assert str(shape) in text or str(list(shape)) in text, text


def test_a_wrong_shape_names_the_node_and_both_shapes(mx, net) -> None:
    text = message_of(mx, lambda: net(mx.nd.zeros((1, 3, 8, 8))))
    assert "digitsnet_conv0" in text
    assert "(1, 3, 8, 8)" in text


def test_another_dtype_is_refused_by_name(mx, net) -> None:
    for dtype in ("float64", "int32", "uint8"):
        assert dtype in message_of(mx, lambda dtype=dtype: net(mx.nd.zeros((1, 1, 8, 8), dtype=dtype)))


def test_zero_images_give_zero_answers_or_an_error(mx, net) -> None:
    try:
        answer = net(mx.nd.array(np.zeros((0, 1, 8, 8), np.float32)))
        assert answer.asnumpy().shape == (0, 10)
    except mx.base.MXNetError as error:
        assert str(error).strip()


def test_an_unknown_operator_is_named_with_its_node_and_how_often_it_is_used(mx, tmp_path: Path) -> None:
    graph = json.loads(tiny_model()[0])
    for node in graph["nodes"]:
        if node["name"] in ("relu", "flat"):
            node["op"] = "NoSuchOperator"
    path = tmp_path / "unknown-symbol.json"
    path.write_text(json.dumps(graph))
    text = message_of(mx, lambda: mx.sym.load(str(path)))
    assert "NoSuchOperator" in text
    assert "relu" in text
    assert "2" in text, "how many nodes use it is not said: " + text


def test_a_copy_that_has_no_memory_does_not_hide_the_failure_of_the_operator(mx) -> None:
    with pytest.raises(MemoryError, match=r"^one_hot: allocating 4000000000000 bytes"):
        mx.nd.one_hot(mx.nd.array([1]), depth=10**12).asnumpy()


def test_object_arrays_are_refused(mx) -> None:
    with pytest.raises((mx.base.MXNetError, TypeError, ValueError)):
        mx.nd.array(np.array([object(), None], dtype=object)).wait_to_read()


@pytest.mark.parametrize("shape", [(2.5,), "ab", None, [[1]]])
def test_a_shape_that_is_none_is_shown(mx, shape) -> None:
    for make in (mx.nd.zeros, mx.nd.ones, mx.nd.empty):
        with pytest.raises(TypeError, match="shape") as caught:
            make(shape)
        assert repr(shape) in str(caught.value)


def test_what_is_compiled_must_be_a_symbol(mx) -> None:
    assert "Symbol" in message_of(mx, lambda: mx.nd.CachedOp("model-symbol.json"))


def test_strange_but_sound_arrays_work(mx, net) -> None:
    images = digits(12)[0]
    want = net(mx.nd.array(images[::-2].copy())).asnumpy()
    assert np.array_equal(net(mx.nd.array(images[::-2])).asnumpy(), want), "negative strides"
    frozen = images[::-2].copy()
    frozen.setflags(write=False)
    assert np.array_equal(net(mx.nd.array(frozen)).asnumpy(), want), "read-only"
    fortran = np.asfortranarray(images[::-2])
    assert np.array_equal(net(mx.nd.array(fortran)).asnumpy(), want), "Fortran order"
    swapped = images[::-2].astype(">f4")
    assert np.array_equal(net(mx.nd.array(swapped)).asnumpy(), want), "foreign byte order"
    unaligned = np.frombuffer(b"\0" + frozen.tobytes(), np.uint8)[1:].view("<f4").reshape(frozen.shape)
    assert np.array_equal(net(mx.nd.array(unaligned)).asnumpy(), want), "unaligned"
    assert np.array_equal(net(mx.nd.array(images[::-2].tolist())).asnumpy(), want), "nested lists"


def test_what_an_array_was_made_from_may_change_afterwards(mx) -> None:
    source = np.ones((64, 64), np.float32)
    array = mx.nd.array(source)
    doubled = array * 2
    source[:] = 7
    assert (doubled.asnumpy() == 2).all()
    copy = array.asnumpy()
    copy[:] = 9
    assert (array.asnumpy() == 1).all()


def test_after_an_error_the_block_answers_as_before(mx, net, image) -> None:
    want = net(image).asnumpy()
    for shape in ((1, 3, 8, 8), (2, 2), (1, 1, 4, 4)):
        try:
            net(mx.nd.zeros(shape)).wait_to_read()
        except mx.base.MXNetError:
            pass
        assert np.array_equal(net(image).asnumpy(), want)


# ---- what is passed instead of a context, an array, a name ---------------------------------------


@pytest.fixture
def saved(mx, tmp_path):
    """A small network in files: prefix and symbol."""
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    prefix = str(tmp_path / "small")
    mx.model.save_checkpoint(prefix, 0, symbol, {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros(2)}, {})
    return prefix, symbol


def imported(mx, prefix: str, names: list[str] | None = None, **options):
    return mx.gluon.SymbolBlock.imports(f"{prefix}-symbol.json", names or ["data"], f"{prefix}-0000.params", **options)


def test_a_name_is_no_context(mx, saved) -> None:
    prefix, symbol = saved
    net = imported(mx, prefix)
    for call in (
        lambda: imported(mx, prefix, ctx="cpu"),
        lambda: imported(mx, prefix, ctx=["cpu"]),
        lambda: net.load_parameters(f"{prefix}-0000.params", ctx="cpu"),
        lambda: net.collect_params().reset_ctx("cpu"),
        lambda: mx.mod.Module(symbol, label_names=None, context="cpu"),
        lambda: symbol.simple_bind("cpu", grad_req="null", data=(1, 3)),
        lambda: mx.nd.ones((2,)).as_in_context("cpu"),
    ):
        with pytest.raises(TypeError, match=r"expected a Context, got 'cpu': pass mx\.cpu\(\)"):
            call()
    with pytest.raises(TypeError, match=r"expected a Context, got 0: pass a context such as mx\.cpu\(\)"):
        imported(mx, prefix, ctx=0)


def test_a_wrong_name_of_an_input_is_the_first_that_the_error_says(mx, saved) -> None:
    with pytest.raises(mx.base.MXNetError) as caught:
        imported(mx, saved[0], ["dta"])
    first, *others = str(caught.value).splitlines()
    assert first == (
        "input_names: the symbol has no input called 'dta'. Its inputs without a value in the file are 'data'."
    )
    assert "missing in the file: 'data'" in "".join(others)


@pytest.mark.parametrize("sign", ["-", "+", "*", "/", "**", ">"])
def test_numpy_arrays_and_lists_beside_an_array_are_errors_with_the_remedy(mx, sign: str) -> None:
    held = mx.nd.ones((1, 2))
    for other in (np.ones((1, 2)), [[1, 2]]):
        with pytest.raises(TypeError, match=r"not supported: make an NDArray of it by mx\.nd\.array"):
            eval(f"held {sign} other", {"held": held, "other": other})
    with pytest.raises(TypeError, match=r"not supported: make an NDArray of it by mx\.nd\.array"):
        mx.nd.add(held, np.ones((1, 2)))
    with pytest.raises(TypeError, match=r"'NoneType'> not supported$"):
        held - None


# ---- training ----------------------------------------------------------------------------------


def module(mx):
    symbol, args, auxs = mx.model.load_checkpoint(str(DIGITS / "digits_cnn"), 0)
    return mx.mod.Module(symbol, data_names=["data"], label_names=None), args, auxs


TRAINING = {
    "Module.fit": lambda mx: module(mx)[0].fit(None),
    "Module.backward": lambda mx: module(mx)[0].backward(),
    "Module.init_optimizer": lambda mx: module(mx)[0].init_optimizer(),
    "autograd.backward": lambda mx: mx.autograd.backward([mx.nd.ones((2,))]),
    "attach_grad": lambda mx: mx.nd.ones((2,)).attach_grad(),
    "backward": lambda mx: mx.nd.ones((2,)).backward(),
    "Optimizer._get_lr": lambda mx: mx.optimizer.SGD()._get_lr(0),
    "row_sparse_data": lambda mx: mx.gluon.Parameter("w", shape=(2, 3)).row_sparse_data(mx.nd.array([0])),
    "Trainer.step": lambda mx: mx.gluon.Trainer({}, "sgd").step(1),
}


@pytest.mark.parametrize("name", TRAINING)
def test_training_is_refused_in_words(mx, name: str) -> None:
    with pytest.raises(mx.base.MXNetError, match=r"(?i)train"):
        TRAINING[name](mx)


# ---- messages ----------------------------------------------------------------------------------


def test_an_unknown_precision_is_refused_at_once_and_changes_nothing(mx, net, image) -> None:
    net.hybridize(precision="exact")
    want = net(image).asnumpy()
    flags, compiled = list(net._flags), net._compiled
    for wrong in ({"precision": "fp8"}, {"inline_limit": "many"}):
        text = message_of(mx, lambda wrong=wrong: net.hybridize(**wrong))
        assert f"{next(iter(wrong.values()))}" in text and next(iter(wrong)) in text
    assert (net._flags, net._compiled) == (flags, compiled)
    assert np.array_equal(net(image).asnumpy(), want)
    outer = mx.gluon.nn.HybridSequential()
    outer.add(net)
    message_of(mx, lambda: outer.hybridize(precision="fp8"))
    assert not outer._active
    assert net._flags == flags


@pytest.mark.parametrize("space", ["nd", "sym"])
def test_a_misspelt_operator_is_suggested_and_an_absent_one_is_said_to_be_mxnets(mx, space: str) -> None:
    module = getattr(mx, space)
    for wrong, right in [("Convolutoin", "Convolution"), ("relU", "relu"), ("fullyconnected", "FullyConnected")]:
        with pytest.raises(AttributeError, match=f"has no attribute '{wrong}'; did you mean '{right}'"):
            getattr(module, wrong)
    with pytest.raises(AttributeError, match="did you mean 'box_nms'"):
        _ = module.contrib.box_nmss
    with pytest.raises(AttributeError, match="count_sketch is an operator of MXNet that mxrt does not have yet"):
        _ = module.contrib.count_sketch
    with pytest.raises(AttributeError, match="sgd_update belongs to training") as caught:
        _ = module.sgd_update
    assert isinstance(caught.value, mx.base.TrainingNotSupportedError)
    with pytest.raises(AttributeError) as caught:
        _ = module.qqqqqqqqqq
    assert "did you mean" not in str(caught.value)
    assert not hasattr(module, "Convolutoin")


def test_files_in_each_others_place_are_recognised(mx) -> None:
    assert "parameter file: the two are in each other's place" in message_of(mx, lambda: mx.sym.load(str(PARAMS)))
    assert "looks like a symbol file: the two are in each other's place" in message_of(
        mx, lambda: mx.nd.load(str(SYMBOL))
    )
    swapped = message_of(mx, lambda: mx.gluon.SymbolBlock.imports(str(PARAMS), ["data"], str(SYMBOL)))
    assert "in each other's place" in swapped


def test_complex_numbers_are_a_type_error(mx) -> None:
    for wrong in (np.ones(2, complex), [1j], 1j):
        with pytest.raises(TypeError, match="complex"):
            mx.nd.array(wrong)


def test_wrong_arguments_of_helpers_are_errors_that_name_them(mx) -> None:
    calls = {
        "Context: there is no kind of device None": lambda: mx.Context(None),
        "Context: there is no kind of device 'gpuu'; known: cpu": lambda: mx.Context("gpuu"),
        "from_dlpack: expected a capsule": lambda: mx.nd.from_dlpack(None),
        "to_dlpack_for_read: data must be an NDArray, got NoneType": lambda: mx.nd.to_dlpack_for_read(None),
        "to_dlpack_for_write: data must be an NDArray, got int": lambda: mx.nd.to_dlpack_for_write(1),
        "histogram: a must be an NDArray, got list": lambda: mx.nd.histogram([1]),
        "onehot_encode: indices must be an NDArray, got list": lambda: mx.nd.onehot_encode([1], mx.nd.ones((1, 2))),
        "onehot_encode: out must have 2 axes": lambda: mx.nd.onehot_encode(mx.nd.ones(1), mx.nd.ones(2)),
        "moveaxis: tensor must be an NDArray, got ndarray": lambda: mx.nd.moveaxis(np.ones((1, 2)), 0, 1),
        "Module: symbol must be a Symbol, got NoneType": lambda: mx.mod.Module(None),
    }
    for text, call in calls.items():
        assert message_of(mx, call).startswith(text)


def test_uncaught_errors_are_printed_with_the_name_that_logs_are_searched_for() -> None:
    result = run_python("import mxrt as mx\nmx.nd.ones((2, 3)).reshape((4, 4))")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith("mxrt.base.MXNetError.MXNetShapeError: ")


def test_messages_do_not_repeat_what_is_too_long_to_be_read(mx, tmp_path: Path) -> None:
    long = "x" * 2_000_000
    graph = json.loads(SYMBOL.read_text())
    conv = next(node for node in graph["nodes"] if node["op"] == "Convolution")
    for key in ("op", "name"):
        text = json.dumps({**graph, "nodes": [{**n, key: long} if n is conv else n for n in graph["nodes"]]})

        def run(text: str = text) -> object:
            symbol = mx.sym.load_json(text)
            return mx.nd.CachedOp(symbol)(*(mx.nd.ones((1, 2)) for _ in symbol.list_inputs()))

        assert len(message_of(mx, run)) <= 21_000
    path = tmp_path / "long.params"
    mx.nd.save(str(path), {long: mx.nd.ones(1)})
    for call in (
        lambda: mx.gluon.SymbolBlock.imports(str(SYMBOL), ["data"], str(path)),
        lambda: mx.nd.load(long),
        lambda: mx.sym.load(long),
        lambda: mx.nd.Convolution(mx.nd.ones((1, 1, 3, 3)), mx.nd.ones((1, 1, 3, 3)), kernel=long, num_filter=1),
        lambda: mx.Context(long),
    ):
        said = message_of(mx, call)
        assert len(said) <= 21_000
        assert "characters)..." in said


# ---- attributes --------------------------------------------------------------------------------


def test_attributes_that_hold_themselves_are_refused(mx) -> None:
    endless: list = []
    endless.append(endless)
    deep: tuple = ()
    for _ in range(100_000):
        deep = (deep,)
    x = mx.nd.ones((3, 3))
    for value in (endless, deep, [deep]):
        for call in (
            lambda value=value: mx.nd.transpose(x, axes=value),
            lambda value=value: mx.sym.var("x", shape=value),
            lambda value=value: mx.nd.random.uniform(shape=value),
            lambda value=value: mx.io.CSVIter(data_csv="a", data_shape=value, batch_size=1),
        ):
            with pytest.raises((mx.base.MXNetError, TypeError, RecursionError)):
                call()


def test_attributes_are_spelt_as_mxnet_spells_them(mx) -> None:
    text = mx._mxrt.attr_text
    spelt = [((3,), "(3,)"), ((1, 2), "(1, 2)"), ((), "()"), ([4], "[4]"), ([(1,), None], "[(1,), None]"), (2.0, "2.0")]
    assert [text(value) for value, _ in spelt] == [want for _, want in spelt]
    assert text(np.float32(0.5)) == "0.5" and text(True) == "True" and text("(1,)") == "(1,)"


def test_positions_that_are_negative_are_refused(mx) -> None:
    x = mx.nd.arange(5)
    with pytest.raises(IndexError):
        mx._mxrt.gather(x, np.array([0, -1]))
    assert x[np.array([0, -1])].asnumpy().tolist() == [0, 4], "numpy counts these from the end"


def test_operators_that_passes_make_cannot_be_called(mx) -> None:
    with pytest.raises(mx.base.MXNetError, match="_fused_elementwise"):
        mx._mxrt.invoke("_fused_elementwise", (mx.nd.ones((2,)),), {"program": ""})
    assert mx._mxrt.get_operator("_fused_elementwise") is None
    assert not any(name.startswith("_blocked") for name in mx._mxrt.operator_names())


def test_booleans_of_other_libraries_are_0_or_1(mx) -> None:
    truth = mx.nd.array(np.array([True, False, True]), dtype="bool")
    assert truth.asnumpy().dtype == np.bool_ and truth.asnumpy().tolist() == [True, False, True]
