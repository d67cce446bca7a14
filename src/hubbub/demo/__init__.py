"""The live demonstration and `watch`: scenes of simulated devices, whose truth is shown next to the estimates."""
