"""What each kind of task asks of a cluster; on one machine requests are ignored."""

from dataclasses import dataclass

from kfp.dsl import PipelineTask


@dataclass(frozen=True)
class Resources:
    """CPU and memory of one task's pod, in Kubernetes quantities."""

    cpu_request: str
    cpu_limit: str
    memory_request: str
    memory_limit: str


SMALL = Resources(cpu_request="500m", cpu_limit="2", memory_request="1Gi", memory_limit="4Gi")
"""Reads and writes tables."""

LARGE = Resources(cpu_request="2", cpu_limit="8", memory_request="4Gi", memory_limit="16Gi")
"""Embeds, trains or generates on CPU."""


def place(task: PipelineTask, resources: Resources) -> PipelineTask:
    """Give a task its resources, and switch KFP's cache off: ours decides by digest."""
    task.set_caching_options(enable_caching=False)
    task.set_cpu_request(resources.cpu_request)
    task.set_cpu_limit(resources.cpu_limit)
    task.set_memory_request(resources.memory_request)
    task.set_memory_limit(resources.memory_limit)
    return task
