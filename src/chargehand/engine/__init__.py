"""The port through which a run touches the world, and the engines that carry it: `local` in this process."""
