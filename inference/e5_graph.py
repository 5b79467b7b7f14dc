"""multilingual-e5-small as an ONNX graph for one text a run: token ids in, one unit vector out, and one for each token.

One text a run because dynamic quantisation scales over a whole tensor: in a batch a vector would depend on its
neighbours, and on a CPU a batch gains nothing. Positions start at 0, the token type is always 0, there is no mask.

Three forms of the same graph: `Float` keeps float32 matrices (the reference, and the fallback); `Tapped` is that with
the largest activations of each matrix's input as further outputs (the measurements that SmoothQuant needs); `Int8` has
per-column symmetric integer weights and dynamic 8-bit activations.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.e5_weights import BLOCK, FEED, HEADS, HIDDEN, LAYERS, Weights
from inference.interfaces import Vectors

# The outputs; only what is asked for is computed.
EMBEDDING, TOKENS = "embedding", "tokens"
TAP = ".max"  # ends the names of the outputs that `Tapped` has beside them

_MICROSOFT = "com.microsoft"  # onnxruntime's own operators
# Share of the activations' range that is moved into the weights (SmoothQuant, arXiv 2211.10438; alpha found by trial).
_ALPHA = 0.7

# The four matrices of a layer: name, the tensors stacked in it, its inputs, whether each token's row gets a scale.
_QKV, _OUT, _UP, _DOWN = "qkv", "ao", "fi", "fo"


class Float:
    """Builds the float32 graph; the other forms replace `linear`."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []
        self.outputs: dict[str, Sequence[str | int]] = {EMBEDDING: ["b", HIDDEN], TOKENS: ["b", "s", HIDDEN]}

    def save(self, path: Path) -> None:
        """Write the graph."""
        import onnx
        from onnx import TensorProto, helper

        self._body()
        graph = helper.make_graph(
            self.nodes,
            "e5",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "s"])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in self.outputs.items()],
            self.tensors,
        )
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(_MICROSOFT, 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)

    def linear(self, x: str, name: str, weight: Vectors, bias: str, *, per_token: bool) -> str:
        """x times the transposed weight (outputs, inputs), plus the bias."""
        product = self.op("MatMul", [x, self.const(f"{name}.w", weight.T)], f"{name}.product")
        return self.op("Add", [product, bias], name)

    def const(self, name: str, value: NDArray[Any]) -> str:
        """A constant of the graph; returns its name."""
        from onnx import numpy_helper

        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def op(self, kind: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: Any) -> str:
        """A node with one output; returns the output's name."""
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [output], domain=domain, name=output, **attributes))
        return output

    def _body(self) -> None:
        self.const("last", np.array([-1], np.int64))
        self.const("zero", np.array([0], np.int64))
        self.const("one", np.array([1], np.int64))
        self.const("heads", np.array([0, 0, HEADS, HIDDEN // HEADS], np.int64))
        self.const("flat", np.array([0, 0, HIDDEN], np.int64))
        self.const("root", np.array((HIDDEN // HEADS) ** -0.5, np.float32))
        x = self._embedding()
        for layer in range(LAYERS):
            x = self._layer(x, f"l{layer}.")
        # The mean's division by the length falls out in the normalisation.
        total = self.op("ReduceSum", [x, "one"], "total", keepdims=0)
        self._unit(total, EMBEDDING)
        self._unit(x, TOKENS)

    def _unit(self, x: str, output: str) -> None:
        self.op("Div", [x, self.op("ReduceL2", [x, "last"], f"{output}.norm", keepdims=1)], output)

    def _embedding(self) -> str:
        from onnx import TensorProto

        scales, quants = self.weights.blocks("emb.word", HIDDEN)
        packed = quants[:, 0::2] | quants[:, 1::2] << 4
        for name, shape, data in (
            ("words", quants.shape, packed),
            ("words.zero", scales.shape, np.full(scales.size // 2, 0x88, np.uint8)),  # 8 in both nibbles
        ):
            tensor = TensorProto(name=name, data_type=TensorProto.UINT4, raw_data=data.tobytes())
            tensor.dims.extend(shape)
            self.tensors.append(tensor)
        gathered = ["words", "input_ids", self.const("words.scale", scales), "words.zero"]
        blocks = {"block_size": BLOCK, "gather_axis": 0, "quantize_axis": 1}
        word = self.op("GatherBlockQuantized", gathered, "word", _MICROSOFT, **blocks)
        positions = self.weights.floats("emb.pos").reshape(-1, HIDDEN) + self.weights.floats("emb.type")[:HIDDEN]
        self.const("positions", positions)
        length = self.op("Shape", ["input_ids"], "length", start=1, end=2)
        position = self.op("Slice", ["positions", "zero", length, "zero"], "position")
        return self._norm(self.op("Add", [word, position], "embedded"), "emb.ln", "x")

    def _layer(self, x: str, p: str) -> str:
        context = self._attention(x, p)
        attended = self._matrix(context, p, _OUT, (_OUT,), HIDDEN)
        x = self._norm(self.op("Add", [x, attended], f"{p}residual1"), f"{p}aln", f"{p}x1")
        inner = self.op("Gelu", [self._matrix(x, p, _UP, (_UP,), HIDDEN)], f"{p}gelu")
        # Most of the integer error arises behind the Gelu: there each token's row gets a scale of its own.
        fed = self._matrix(inner, p, _DOWN, (_DOWN,), FEED, per_token=True)
        return self._norm(self.op("Add", [x, fed], f"{p}residual2"), f"{p}oln", f"{p}x2")

    def _attention(self, x: str, p: str) -> str:
        from onnx import helper

        stacked = self._matrix(x, p, _QKV, ("q", "k", "v"), HIDDEN)
        parts = [f"{p}{part}" for part in "qkv"]
        self.nodes.append(helper.make_node("Split", [stacked], parts, name=f"{p}split", axis=-1, num_outputs=3))
        q, k, v = (
            self.op("Transpose", [self.op("Reshape", [part, "heads"], f"{part}.heads")], f"{part}.turned", perm=perm)
            for part, perm in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        scaled = self.op("Mul", [self.op("MatMul", [q, k], f"{p}qk"), "root"], f"{p}scaled")
        mixed = self.op("MatMul", [self.op("Softmax", [scaled], f"{p}softmax", axis=-1), v], f"{p}mixed")
        turned = self.op("Transpose", [mixed], f"{p}mixed.turned", perm=[0, 2, 1, 3])
        return self.op("Reshape", [turned, "flat"], f"{p}context")

    def _matrix(self, x: str, p: str, name: str, parts: Sequence[str], inputs: int, *, per_token: bool = False) -> str:
        weight = np.concatenate([self.weights.matrix(f"{p}{part}.w", inputs) for part in parts])
        bias = np.concatenate([self.weights.floats(f"{p}{part}.b") for part in parts])
        return self.linear(x, p + name, weight, self.const(f"{p}{name}.bias", bias), per_token=per_token)

    def _norm(self, x: str, name: str, output: str) -> str:
        gain = self.const(f"{name}.gain", self.weights.floats(f"{name}.w"))
        bias = self.const(f"{name}.shift", self.weights.floats(f"{name}.b"))
        return self.op("LayerNormalization", [x, gain, bias], output, axis=-1, epsilon=1e-12)


class Tapped(Float):
    """The float32 graph, with the largest magnitude per input channel of each smoothed matrix as outputs."""

    def linear(self, x: str, name: str, weight: Vectors, bias: str, *, per_token: bool) -> str:
        if not per_token:
            tap = self.op("ReduceMax", [self.op("Abs", [x], f"{name}.abs"), "one"], name + TAP, keepdims=0)
            self.outputs[tap] = ["b", weight.shape[1]]
        return super().linear(x, name, weight, bias, per_token=per_token)


class Int8(Float):
    """Integer weights of `bits` bits (8, or 7 where the CPU's 16-bit sums would overflow) and 8-bit activations.

    `maxima` maps a tap's name (see Tapped) to the largest magnitude per channel, shape (inputs,).
    """

    def __init__(self, weights: Weights, maxima: Mapping[str, Vectors], bits: int) -> None:
        super().__init__(weights)
        self.maxima = maxima
        self.limit = 2 ** (bits - 1) - 1

    def linear(self, x: str, name: str, weight: Vectors, bias: str, *, per_token: bool) -> str:
        if per_token:
            return self._per_token(x, name, weight, bias)
        smooth = np.maximum(self.maxima[name + TAP], 1e-3) ** _ALPHA
        smooth /= np.maximum(np.abs(weight).max(axis=0), 1e-4) ** (1 - _ALPHA)
        smooth = (smooth / np.exp(np.log(smooth).mean())).astype(np.float32)
        smoothed = self.op("Mul", [x, self.const(f"{name}.smooth", 1 / smooth)], f"{name}.in")
        integers = self._integers(name, weight * smooth)
        return self.op("DynamicQuantizeMatMul", [smoothed, *integers, "", bias], name, _MICROSOFT)

    def _per_token(self, x: str, name: str, weight: Vectors, bias: str) -> str:
        floor = self.const(f"{name}.floor", np.array(0.2, np.float32))
        row = self.op("Max", [self.op("ReduceMax", [x, "last"], f"{name}.peak", keepdims=1), floor], f"{name}.row")
        scaled = self.op("Div", [x, row], f"{name}.in")
        integers = self._integers(name, weight)
        product = self.op("DynamicQuantizeMatMul", [scaled, *integers], f"{name}.product", _MICROSOFT)
        return self.op("Add", [self.op("Mul", [product, row], f"{name}.scaled"), bias], name)

    def _integers(self, name: str, weight: Vectors) -> tuple[str, str]:
        scale = (np.abs(weight).max(axis=1) / self.limit).astype(np.float32)
        integers = np.clip(np.rint(weight / scale[:, None]), -self.limit, self.limit).astype(np.int8)
        return self.const(f"{name}.w", integers.T), self.const(f"{name}.scale", scale)
