"""The run's own interpreter up to the door of the kernel: `interpreter` walks a program, `expressions` has what differs
of a run in single forms, `stand_ins` what stands for the kernel, for sources and for choices, `forms` what is known of
values that are not.
"""
