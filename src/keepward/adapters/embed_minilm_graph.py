"""The transformer blocks of all-MiniLM-L6-v2 as an ONNX graph, built in memory for onnxruntime.

Only the six blocks are in the graph: looking up the embeddings and pooling stay in numpy, shared by both
backends. The weights are handed to the session beside the graph, so that nothing is written to disk: building
the graph anew costs a quarter of a second, once a process and only where there are many texts.

Invariants
(1) The graph computes what `embed_minilm_numpy` computes; a test compares them.
(2) One batch holds texts of one length: there is no mask because there is no padding.
(3) A call runs on the caller's thread alone, so that the caller decides how many run side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepward.adapters.embed_minilm_numpy import EPSILON, HEADS, LAYERS, Floats, Weights

#: The first operator set with Gelu; onnxruntime 1.18 and later run it.
_OPSET = 20


class OnnxForward:
    """Runs the blocks in onnxruntime; thread safe."""

    def __init__(self, weights: Weights) -> None:
        import onnxruntime as ort

        model, initial = _model(weights)
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        # The session reads the arrays in place and does not own them: kept for as long as it lives.
        self._kept = [ort.OrtValue.ortvalue_from_numpy(value) for value in initial.values()]
        options.add_external_initializers(list(initial), self._kept)
        self._session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def __call__(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the last hidden states of embedded texts, both float32, shape (texts, tokens, 384)."""
        states: NDArray[np.float32] = self._session.run(None, {"x": x})[0]
        return states


def _model(weights: Weights) -> tuple[bytes, dict[str, NDArray[np.float32]]]:
    import onnx
    from onnx import helper

    nodes: list[Any] = []
    initial: dict[str, NDArray[np.float32]] = {}

    def constant(name: str, value: Floats) -> str:
        initial[name] = np.ascontiguousarray(value, dtype=np.float32)
        return name

    def node(kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"{kind}_{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def linear(x: str, name: str) -> str:
        matrix = constant(name + ".weight", weights[name + ".weight"].T)
        return node("Add", node("MatMul", x, matrix), constant(name + ".bias", weights[name + ".bias"]))

    def norm(x: str, name: str) -> str:
        scale = constant(name + ".weight", weights[name + ".weight"])
        shift = constant(name + ".bias", weights[name + ".bias"])
        return node("LayerNormalization", x, scale, shift, axis=-1, epsilon=EPSILON)

    shapes = [
        helper.make_tensor("split", onnx.TensorProto.INT64, [4], [0, 0, HEADS, -1]),
        helper.make_tensor("join", onnx.TensorProto.INT64, [3], [0, 0, -1]),
        helper.make_tensor("shrink", onnx.TensorProto.FLOAT, [], [(384 // HEADS) ** -0.5]),
    ]
    x = "x"
    for number in range(LAYERS):
        at = f"encoder.layer.{number}."
        q, k, v = (
            node("Reshape", linear(x, f"{at}attention.self.{name}"), "split") for name in ("query", "key", "value")
        )
        scores = node("MatMul", node("Transpose", q, perm=[0, 2, 1, 3]), node("Transpose", k, perm=[0, 2, 3, 1]))
        shares = node("Softmax", node("Mul", scores, "shrink"), axis=-1)
        heads = node("MatMul", shares, node("Transpose", v, perm=[0, 2, 1, 3]))
        joined = node("Reshape", node("Transpose", heads, perm=[0, 2, 1, 3]), "join")
        x = norm(node("Add", linear(joined, at + "attention.output.dense"), x), at + "attention.output.LayerNorm")
        inner = node("Gelu", linear(x, at + "intermediate.dense"))
        x = norm(node("Add", linear(inner, at + "output.dense"), x), at + "output.LayerNorm")

    floats = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "minilm",
        [helper.make_tensor_value_info("x", floats, ["texts", "tokens", 384])],
        [helper.make_tensor_value_info(x, floats, ["texts", "tokens", 384])],
        shapes + [_external(onnx, name, value) for name, value in initial.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9)
    return model.SerializeToString(), initial


def _external(onnx: Any, name: str, value: Floats) -> Any:
    """Declare a weight whose bytes the session brings along; the location is never opened."""
    tensor = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=value.shape)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights")
    return tensor
