"""Attribution: every generated token traced to concepts, inputs and training chunks."""
