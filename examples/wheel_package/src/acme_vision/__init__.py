# SPDX-License-Identifier: Apache-2.0
"""An example of a package whose kernels and CCCL algorithms are compiled in its wheel: docs/how-to/embed-bundles.md."""

import os.path

import kiln

_HERE = os.path.dirname(__file__)
_BUNDLE = os.path.join(_HERE, "acme_vision.kiln")

# A wheel has the bundle. A source checkout has none: there, kiln compiles what is requested.
if os.path.exists(_BUNDLE):
    kiln.use_bundle(_BUNDLE)
UNITS = kiln.read_manifest(os.path.join(_HERE, "kiln.toml"))
kiln.request_warmup(UNITS.values())


def blur(image, out, stream):
    """Blurs a two-dimensional float32 array of the device into another one."""
    height, width = image.shape
    kernel = kiln.get(UNITS["blur.cu"], "blur<float>")
    kernel.launch(image, out, width, height, grid=((width + 15) // 16, (height + 15) // 16), block=(16, 16), stream=stream)
