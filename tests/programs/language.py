"""Programs that classify, translate and continue text."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gluon_cases import fill, numbers

from ._base import program, rounded


def encoder_classifier(mx):
    """A small BERT: three embeddings, masked attention, pooler, classifier."""
    gluon, nn = mx.gluon, mx.gluon.nn

    class Layer(gluon.HybridBlock):
        def __init__(self, units: int, heads: int, **options) -> None:
            super().__init__(**options)
            self._units, self._heads = units, heads
            with self.name_scope():
                self.qkv = nn.Dense(3 * units, flatten=False)
                self.proj, self.norm1 = nn.Dense(units, flatten=False), nn.LayerNorm(epsilon=1e-12)
                self.ffn1, self.ffn2 = nn.Dense(2 * units, flatten=False), nn.Dense(units, flatten=False)
                self.act, self.norm2, self.drop = nn.GELU(), nn.LayerNorm(epsilon=1e-12), nn.Dropout(0.1)

        def split(self, F, x):
            x = F.transpose(F.reshape(x, shape=(0, 0, self._heads, -1)), axes=(0, 2, 1, 3))
            return F.reshape(x, shape=(-1, 0, 0), reverse=True)

        def hybrid_forward(self, F, x, mask):
            query, key, value = (self.split(F, part) for part in F.split(self.qkv(x), num_outputs=3, axis=-1))
            query = F.contrib.div_sqrt_dim(query)
            scores = F.batch_dot(query, key, transpose_b=True)
            mask = F.broadcast_axis(F.expand_dims(mask, axis=1), axis=1, size=self._heads)
            mask = F.reshape(mask, shape=(-1, 0, 0), reverse=True)
            scores = F.where(mask, scores, -1e18 * F.ones_like(scores))
            weights = F.broadcast_mul(F.softmax(scores, axis=-1), mask)
            context = F.reshape(F.batch_dot(weights, value), shape=(-1, self._heads, 0, 0), reverse=True)
            context = F.reshape(F.transpose(context, axes=(0, 2, 1, 3)), shape=(0, 0, -1))
            x = self.norm1(x + self.drop(self.proj(context)))
            return self.norm2(x + self.drop(self.ffn2(self.act(self.ffn1(x)))))

    class Model(gluon.HybridBlock):
        def __init__(self, **options) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.word, self.segment = nn.Embedding(20, 8), nn.Embedding(2, 8)
                self.position = self.params.get("position_weight", shape=(6, 8))
                self.norm = nn.LayerNorm(epsilon=1e-12)
                self.layers = nn.HybridSequential()
                with self.layers.name_scope():
                    for _ in range(2):
                        self.layers.add(Layer(8, 2))
                self.pooler = nn.Dense(8, activation="tanh", flatten=False)
                self.classifier = nn.HybridSequential()
                with self.classifier.name_scope():
                    self.classifier.add(nn.Dropout(0.1), nn.Dense(3))

        def hybrid_forward(self, F, tokens, types, valid_length, position):
            x = self.word(tokens) + self.segment(types)
            x = self.norm(F.broadcast_add(x, F.expand_dims(position, axis=0)))
            steps = F.contrib.arange_like(tokens, axis=1)
            steps = F.broadcast_like(F.expand_dims(steps, axis=0), tokens, lhs_axes=(0,), rhs_axes=(0,))
            mask = F.broadcast_lesser(steps, F.reshape(valid_length, shape=(-1, 1)))
            mask = F.broadcast_mul(
                F.expand_dims(mask, axis=1),
                F.broadcast_like(
                    F.expand_dims(mask, axis=2) * 0 + 1, F.expand_dims(mask, axis=1), lhs_axes=(2,), rhs_axes=(2,)
                ),
            )
            for layer in self.layers._children.values():
                x = layer(x, mask)
            pooled = self.pooler(F.reshape(F.slice_axis(x, axis=1, begin=0, end=1), shape=(0, -1)))
            return self.classifier(pooled)

    return Model(prefix="bert_")


@program
def sentence_classification(mx, folder: Path) -> list:
    model = encoder_classifier(mx)
    model.initialize(mx.init.Normal(0.02), ctx=mx.cpu())
    tokens = mx.nd.array([[2, 5, 7, 3, 0, 0], [2, 9, 9, 4, 11, 3], [2, 3, 0, 0, 0, 0]])
    types = mx.nd.array([[0, 0, 0, 1, 0, 0], [0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]])
    lengths, labels = mx.nd.array([4, 6, 2], dtype="int32"), mx.nd.array([0, 2, 1])
    model(tokens, types, lengths.astype("float32"))
    fill(mx, model)
    metric, loss = mx.metric.Accuracy(), mx.gluon.loss.SoftmaxCELoss()
    found = []
    for hybrid in (False, True):
        if hybrid:
            model.hybridize(static_alloc=True)
        out = model(tokens.as_in_context(mx.cpu()), types, lengths.astype("float32"))
        metric.update([labels], [out])
        found.append([rounded(out), [float(loss(out, labels).mean().asscalar())]])
    model.save_parameters(str(folder / "bert.params"))
    return [found, [metric.get()[1]], sorted(model.collect_params(".*classifier"))]


@program
def greedy_translation(mx, folder: Path) -> list:
    """An encoder and a decoder of cells; the decoder is called step by step."""
    gluon, rnn = mx.gluon, mx.gluon.rnn
    embed = gluon.nn.Embedding(9, 5, prefix="embed_")
    encoder = rnn.BidirectionalCell(rnn.GRUCell(4, prefix="l_"), rnn.GRUCell(4, prefix="r_"))
    decoder = rnn.HybridSequentialRNNCell(prefix="dec_")
    with decoder.name_scope():
        decoder.add(rnn.LSTMCell(8))
        decoder.add(rnn.ResidualCell(rnn.LSTMCell(8)))
    out = gluon.nn.Dense(9, flatten=False, prefix="out_")
    for block in (embed, encoder, decoder, out):
        block.initialize()
    source = mx.nd.array([[1, 2, 3, 4], [4, 4, 0, 0]])

    def translate() -> list:
        states, _ = encoder.unroll(4, embed(source), layout="NTC", merge_outputs=True, valid_length=mx.nd.array([4, 2]))
        context = mx.nd.mean(states, axis=1)
        state = decoder.begin_state(batch_size=2, func=mx.nd.zeros)
        token, words, scores = mx.nd.array([0, 0]), [], []
        for _ in range(5):
            step = mx.nd.concat(embed(token), context, dim=1)
            hidden, state = decoder(step, state)
            logits = out(hidden)
            token = logits.argmax(axis=1)
            scores.append(rounded(logits.log_softmax().max(axis=1)))
            words.append(token.asnumpy().astype(int).tolist())
        return [words, scores]

    translate()
    for block in (embed, encoder, decoder, out):
        fill(mx, block)
    found = translate()
    decoder.hybridize()
    out.hybridize()
    return [found, translate()]


@program
def beam_search_with_modules(mx, folder: Path) -> list:
    """States go from one call of a module to the next, and are taken in the order of the beam."""
    beam, vocabulary, hidden = 3, 7, 6
    cell = mx.rnn.GRUCell(hidden, prefix="dec_")
    previous, state = mx.sym.Variable("previous"), mx.sym.Variable("state")
    embed = mx.sym.Embedding(previous, input_dim=vocabulary, output_dim=4, name="embed")
    output, states = cell(embed, [state])
    logits = mx.sym.FullyConnected(output, num_hidden=vocabulary, name="logits")
    step = mx.sym.Group([mx.sym.log_softmax(logits), states[0]])
    module = mx.mod.Module(step, data_names=("previous", "state"), label_names=None, context=mx.cpu())
    module.bind([("previous", (beam,)), ("state", (beam, hidden))], for_training=False)
    module.init_params(mx.init.Zero())
    args, aux = module.get_params()
    module.set_params({name: mx.nd.array(2 * numbers(name, value.shape)) for name, value in args.items()}, aux)
    tokens, held = mx.nd.zeros((beam,)), mx.nd.array(numbers("state", (1, hidden))).broadcast_to((beam, hidden))
    totals, sequences = mx.nd.array([0, -1e9, -1e9]), [[] for _ in range(beam)]
    for _ in range(4):
        module.forward(mx.io.DataBatch([tokens, held]), is_train=False)
        scores, held = module.get_outputs()
        together = mx.nd.broadcast_add(scores, totals.expand_dims(1)).reshape((-1,))
        totals = together.topk(k=beam, ret_typ="value")
        best = together.topk(k=beam).astype("int32")
        rows = mx.nd.floor(best.astype("float32") / vocabulary)
        tokens = best.astype("float32") - rows * vocabulary
        held = mx.nd.take(held, rows)
        order, words = rows.asnumpy().astype(int), tokens.asnumpy().astype(int)
        sequences = [[*sequences[row], int(word)] for row, word in zip(order, words, strict=True)]
    return [sequences, rounded(totals)]


@program
def language_model_evaluation(mx, folder: Path) -> list:
    """Fused LSTM over chunks of a text, the state handed on; perplexity at the end."""
    gluon = mx.gluon

    class Model(gluon.Block):
        def __init__(self, **options) -> None:
            super().__init__(**options)
            with self.name_scope():
                self.drop = gluon.nn.Dropout(0.2)
                self.encoder = gluon.nn.Embedding(11, 6)
                self.rnn = gluon.rnn.LSTM(6, 2, dropout=0.2, input_size=6)
                self.decoder = gluon.nn.Dense(11, in_units=6, params=self.encoder.params)

        def forward(self, inputs, hidden):
            output, hidden = self.rnn(self.drop(self.encoder(inputs)), hidden)
            return self.decoder(self.drop(output).reshape((-1, 6))), hidden

    model = Model(prefix="lm_")
    model.initialize()
    text = np.arange(24).reshape(12, 2) * 7 % 11
    loss, total, count = gluon.loss.SoftmaxCrossEntropyLoss(), 0.0, 0
    hidden = model.rnn.begin_state(func=mx.nd.zeros, batch_size=2, ctx=mx.cpu())
    model(mx.nd.array(text[:3]), hidden)
    fill(mx, model)
    for at in range(0, 9, 3):
        data, target = mx.nd.array(text[at : at + 3]), mx.nd.array(text[at + 1 : at + 4]).reshape((-1,))
        output, hidden = model(data, [state.detach() for state in hidden])
        losses = loss(output, target)
        total += mx.nd.sum(losses).asscalar()
        count += losses.size
    shared = model.decoder.weight is model.encoder.weight
    return [[float(np.exp(total / count))], rounded(hidden), shared, sorted(model.collect_params())]
