"""The run's own interpreter up to the door of the kernel: `foresight` walks a program, `forms` has its expressions,
`stand_ins` what stands for the kernel, for sources and for choices, `likes` what is known of values that are not.
"""
