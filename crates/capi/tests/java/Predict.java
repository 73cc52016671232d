// Networks called from Java through JNA, as engines for Java call libmxnet: numpy shapes for the whole
// process, callable graphs from 64 threads, arrays that the garbage collector's thread frees while
// others compute, and an end without a shutdown hook.
//
// Arguments: the library, and the folder of the recorded models. scripts/java.sh runs it.

import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.IntByReference;
import com.sun.jna.ptr.PointerByReference;
import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

public final class Predict {
    /** The functions of the library that an engine calls. */
    public interface Engine extends Library {
        String MXGetLastError();

        int MXGetVersion(IntByReference out);

        int MXListAllOpNames(IntByReference size, PointerByReference names);

        int NNGetOpHandle(String name, PointerByReference out);

        int MXSetIsNumpyShape(int on, IntByReference before);

        int MXIsNumpyShape(IntByReference on);

        int MXNDArrayCreateEx64(
                long[] shape, int axes, int kind, int device, int late, int dtype, PointerByReference out);

        int MXNDArrayFree(Pointer array);

        int MXNDArraySyncCopyFromCPU(Pointer array, Pointer data, long size);

        int MXNDArraySyncCopyToCPU(Pointer array, Pointer data, long size);

        int MXNDArrayGetShapeEx64(Pointer array, IntByReference axes, PointerByReference shape);

        int MXNDArrayGetGrad(Pointer array, PointerByReference out);

        int MXNDArrayLoad(
                String file,
                IntByReference size,
                PointerByReference arrays,
                IntByReference named,
                PointerByReference names);

        int MXImperativeInvokeEx(
                Pointer op,
                int inputs,
                Pointer[] arrays,
                IntByReference outputs,
                PointerByReference made,
                int attributes,
                String[] keys,
                String[] values,
                PointerByReference storage);

        int MXSymbolCreateFromFile(String file, PointerByReference out);

        int NNSymbolListInputNames(Pointer symbol, int option, IntByReference size, PointerByReference names);

        int MXCreateCachedOpEx(Pointer symbol, int flags, String[] keys, String[] values, PointerByReference out);

        int MXInvokeCachedOpEx(
                Pointer op,
                int inputs,
                Pointer[] arrays,
                IntByReference outputs,
                PointerByReference made,
                PointerByReference storage);
    }

    /** Networks of tests/models, and how far an answer may be from the recorded one. */
    private static final String[] MODELS = {
        "digits_cnn", "module_mlp", "legacy_mlp", "mlp_int8", "wide_deep", "transformer"
    };
    private static final Map<String, Double> FAR = Map.of("mlp_int8", 0.06);
    private static final int THREADS = 64;
    private static final int ROUNDS = 100;

    private static Engine engine;
    private static final Cleaner CLEANER = Cleaner.create();
    private static final AtomicInteger FREED = new AtomicInteger();

    private static void works(int status) {
        if (status != 0) {
            throw new IllegalStateException(engine.MXGetLastError());
        }
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException(what);
        }
    }

    /** An array of the library. The garbage collector's thread frees it. */
    private static final class Array {
        final Pointer handle;

        Array(Pointer handle) {
            this.handle = handle;
            CLEANER.register(
                    this,
                    () -> {
                        works(engine.MXNDArrayFree(handle));
                        FREED.incrementAndGet();
                    });
        }

        static Array of(Numbers numbers) {
            PointerByReference out = new PointerByReference();
            works(engine.MXNDArrayCreateEx64(numbers.shape, numbers.shape.length, 1, -1, 0, numbers.code, out));
            Array array = new Array(out.getValue());
            if (numbers.count() > 0) {
                Memory memory = new Memory(numbers.bytes.length);
                memory.write(0, numbers.bytes, 0, numbers.bytes.length);
                works(engine.MXNDArraySyncCopyFromCPU(array.handle, memory, numbers.count()));
            }
            return array;
        }

        float[] floats() {
            IntByReference axes = new IntByReference();
            PointerByReference shape = new PointerByReference();
            works(engine.MXNDArrayGetShapeEx64(handle, axes, shape));
            int count = 1;
            for (int i = 0; i < axes.getValue(); i++) {
                count *= (int) shape.getValue().getLong(8L * i);
            }
            Memory memory = new Memory(4L * Math.max(count, 1));
            works(engine.MXNDArraySyncCopyToCPU(handle, memory, count));
            return memory.getFloatArray(0, count);
        }
    }

    /** Numbers of an npy file. */
    private static final class Numbers {
        private static final Pattern HEADER =
                Pattern.compile("'descr': '(.)(..)', 'fortran_order': False, 'shape': \\(([^)]*)\\)");
        private static final Map<String, Integer> CODES = Map.of("f4", 0, "f8", 1, "i4", 4, "i8", 6);

        final int code;
        final long[] shape;
        final byte[] bytes;

        Numbers(int code, long[] shape, byte[] bytes) {
            this.code = code;
            this.shape = shape;
            this.bytes = bytes;
        }

        static Numbers read(ZipFile file, String name) throws IOException {
            ZipEntry entry = file.getEntry(name + ".npy");
            try (DataInputStream in = new DataInputStream(file.getInputStream(entry))) {
                byte[] begin = in.readNBytes(10);
                int length = (begin[8] & 0xff) | (begin[9] & 0xff) << 8;
                String header = new String(in.readNBytes(length), StandardCharsets.US_ASCII);
                Matcher found = HEADER.matcher(header);
                check(begin[6] == 1 && found.find() && CODES.containsKey(found.group(2)), name + ": " + header);
                long[] shape =
                        Arrays.stream(found.group(3).split(","))
                                .map(String::trim)
                                .filter(extent -> !extent.isEmpty())
                                .mapToLong(Long::parseLong)
                                .toArray();
                return new Numbers(CODES.get(found.group(2)), shape, in.readAllBytes());
            }
        }

        static Numbers zeros(long... shape) {
            return new Numbers(0, shape, new byte[(int) (4 * Arrays.stream(shape).reduce(1, (a, b) -> a * b))]);
        }

        long count() {
            return Arrays.stream(shape).reduce(1, (a, b) -> a * b);
        }

        float[] floats() {
            float[] all = new float[(int) count()];
            ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(all);
            return all;
        }
    }

    private static String[] names(IntByReference size, PointerByReference names) {
        return size.getValue() == 0 ? new String[0] : names.getValue().getStringArray(0, size.getValue());
    }

    /** A network with its parameters, which any thread may call. */
    private static final class Network {
        private final Pointer op;
        private final Array[] parameters;
        private final List<Integer> data = new ArrayList<>();
        private final String[] inputs;

        Network(Path folder) throws IOException {
            PointerByReference symbol = new PointerByReference();
            works(engine.MXSymbolCreateFromFile(file(folder, "-symbol.json"), symbol));
            IntByReference size = new IntByReference();
            IntByReference named = new IntByReference();
            PointerByReference handles = new PointerByReference();
            PointerByReference names = new PointerByReference();
            works(engine.MXNDArrayLoad(file(folder, ".params"), size, handles, named, names));
            Map<String, Array> loaded = new HashMap<>();
            String[] keys = names(named, names);
            Pointer[] arrays = handles.getValue().getPointerArray(0, size.getValue());
            for (int i = 0; i < keys.length; i++) {
                loaded.put(keys[i].substring(4), new Array(arrays[i]));
            }
            works(engine.NNSymbolListInputNames(symbol.getValue(), 0, size, names));
            inputs = names(size, names);
            parameters = new Array[inputs.length];
            List<Integer> held = new ArrayList<>();
            for (int i = 0; i < inputs.length; i++) {
                parameters[i] = loaded.get(inputs[i]);
                (parameters[i] == null ? data : held).add(i);
            }
            String[] flags = {"data_indices", "param_indices", "static_alloc", "static_shape"};
            String[] values = {data.toString(), held.toString(), "1", "1"};
            PointerByReference out = new PointerByReference();
            works(engine.MXCreateCachedOpEx(symbol.getValue(), flags.length, flags, values, out));
            op = out.getValue();
        }

        private static String file(Path folder, String end) throws IOException {
            try (var files = Files.list(folder)) {
                return files.map(Path::toString).filter(name -> name.endsWith(end)).findFirst().orElseThrow();
            }
        }

        /** The first output for arrays by the name of their input. Labels may be left out. */
        Array call(Map<String, Array> given, long batch) {
            Pointer[] all = new Pointer[inputs.length];
            List<Array> alive = new ArrayList<>();
            for (int i = 0; i < inputs.length; i++) {
                Array array = parameters[i];
                if (array == null) {
                    array = given.get(inputs[i]);
                }
                if (array == null) {
                    array = Array.of(Numbers.zeros(batch));
                }
                alive.add(array);
                all[i] = array.handle;
            }
            IntByReference outputs = new IntByReference();
            PointerByReference made = new PointerByReference();
            PointerByReference storage = new PointerByReference();
            works(engine.MXInvokeCachedOpEx(op, all.length, all, outputs, made, storage));
            java.lang.ref.Reference.reachabilityFence(alive);
            Array first = null;
            for (Pointer handle : made.getValue().getPointerArray(0, outputs.getValue())) {
                Array output = new Array(handle);
                first = first == null ? output : first;
            }
            return first;
        }
    }

    /** Recorded inputs of a batch, and the first output. */
    private static final class Golden {
        final Map<String, Numbers> inputs = new HashMap<>();
        final float[] output;
        final long batch;

        Golden(ZipFile file, int batch) throws IOException {
            this.batch = batch;
            String begin = "b" + batch + ".in.";
            List<String> names =
                    file.stream()
                            .map(ZipEntry::getName)
                            .filter(name -> name.startsWith(begin))
                            .map(name -> name.substring(0, name.length() - ".npy".length()))
                            .collect(Collectors.toList());
            for (String name : names) {
                inputs.put(name.substring(begin.length()), Numbers.read(file, name));
            }
            output = Numbers.read(file, "b" + batch + ".out.0").floats();
        }

        void ask(Network network) {
            ask(network, 2e-4);
        }

        void ask(Network network, double far) {
            Map<String, Array> given = new HashMap<>();
            inputs.forEach((name, numbers) -> given.put(name, Array.of(numbers)));
            float[] found = network.call(given, batch).floats();
            check(found.length == output.length, found.length + " values, not " + output.length);
            for (int i = 0; i < found.length; i++) {
                double most = far + 1e-5 * Math.abs(output[i]);
                check(Math.abs(found[i] - output[i]) <= most, found[i] + " is not " + output[i]);
            }
        }
    }

    private static Array invoke(String name, String[] keys, String[] values, Array... arrays) {
        PointerByReference op = new PointerByReference();
        works(engine.NNGetOpHandle(name, op));
        Pointer[] handles = Arrays.stream(arrays).map(array -> array.handle).toArray(Pointer[]::new);
        IntByReference outputs = new IntByReference();
        PointerByReference made = new PointerByReference();
        works(
                engine.MXImperativeInvokeEx(
                        op.getValue(),
                        handles.length,
                        handles,
                        outputs,
                        made,
                        keys.length,
                        keys,
                        values,
                        new PointerByReference()));
        java.lang.ref.Reference.reachabilityFence(arrays);
        return new Array(made.getValue().getPointer(0));
    }

    private static void arrays() {
        Array scalar = invoke("_npi_full", new String[] {"shape", "value"}, new String[] {"()", "3"});
        Array nothing = Array.of(Numbers.zeros(0, 3));
        String[] none = {};
        check(invoke("_npi_add", none, none, scalar, scalar).floats()[0] == 6, "3 + 3");
        check(invoke("_np_sum", none, none, nothing).floats()[0] == 0, "the sum of nothing");
        PointerByReference gradient = new PointerByReference(scalar.handle);
        works(engine.MXNDArrayGetGrad(scalar.handle, gradient));
        check(gradient.getValue() == null, "an array without a gradient has one");
        try {
            invoke("_npi_add", none, none, Array.of(Numbers.zeros(2, 2)), Array.of(Numbers.zeros(3)));
            check(false, "(2, 2) + (3,) has an answer");
        } catch (IllegalStateException error) {
            check(error.getMessage().contains("(2, 2)"), error.getMessage());
        }
    }

    private static void threads(Network network, Golden golden) throws InterruptedException {
        List<Throwable> failures = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < THREADS; number++) {
            int mine = number;
            threads.add(
                    new Thread(
                            () -> {
                                for (int round = 0; round < ROUNDS; round++) {
                                    if ((round + mine) % ROUNDS == 0) {
                                        refused(network);
                                    } else {
                                        golden.ask(network);
                                    }
                                    if (mine == 0 && round % 10 == 0) {
                                        System.gc();
                                    }
                                }
                            }));
        }
        for (Thread thread : threads) {
            thread.setUncaughtExceptionHandler(
                    (which, error) -> {
                        synchronized (failures) {
                            failures.add(error);
                        }
                    });
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        check(failures.isEmpty(), failures.toString());
    }

    /** A bad request, which fails alone. */
    private static void refused(Network network) {
        try {
            network.call(Map.of("data", Array.of(Numbers.zeros(3, 2, 8, 8))), 3);
            check(false, "two channels have an answer");
        } catch (IllegalStateException error) {
            check(error.getMessage().contains("(3, 2, 8, 8)"), error.getMessage());
        }
    }

    public static void main(String[] arguments) throws Exception {
        engine = Native.load(new File(arguments[0]).getAbsolutePath(), Engine.class);
        IntByReference number = new IntByReference();
        works(engine.MXGetVersion(number));
        check(number.getValue() >= 10901, "version " + number.getValue());
        PointerByReference names = new PointerByReference();
        works(engine.MXListAllOpNames(number, names));
        check(Arrays.asList(names(number, names)).contains("_np_sum"), "_np_sum is not listed");
        works(engine.MXSetIsNumpyShape(2, number));
        works(engine.MXIsNumpyShape(number));
        check(number.getValue() == 2, "numpy shapes are " + number.getValue());
        arrays();
        Network digits = null;
        Golden three = null;
        for (String model : MODELS) {
            Path folder = Path.of(arguments[1], model);
            Network network = new Network(folder);
            try (ZipFile file = new ZipFile(folder.resolve("golden.npz").toFile())) {
                for (int batch : new int[] {1, 3, 16}) {
                    Golden golden = new Golden(file, batch);
                    golden.ask(network, FAR.getOrDefault(model, 2e-4));
                    if (digits == null && batch == 3) {
                        three = golden;
                    }
                }
            }
            digits = digits == null ? network : digits;
        }
        threads(digits, three);
        check(FREED.get() > THREADS * ROUNDS, "the garbage collector freed " + FREED.get() + " arrays");
        System.out.println(
                MODELS.length + " models agree; " + THREADS + " threads, " + THREADS * ROUNDS + " requests; "
                        + "arrays were freed by the garbage collector's thread");
        // Work is pending and arrays are alive when the process ends.
        Array pending = Array.of(Numbers.zeros(256, 256));
        for (int i = 0; i < 10; i++) {
            pending = invoke("_npi_matmul", new String[0], new String[0], pending, pending);
        }
    }
}
