"""The live demonstration and `watch`: scenes of simulated devices, whose truth is shown beside what is estimated."""
