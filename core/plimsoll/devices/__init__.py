"""Decides which devices the claims of a pod get (dynamic resource allocation, resource.k8s.io/v1).

What is there:
    :mod:`~plimsoll.devices.pools` are the devices that a node reaches, from published ResourceSlices;
    :mod:`~plimsoll.devices.cel` and :mod:`~plimsoll.devices.selectors` find those that a selector matches.

What is taken:
    :mod:`~plimsoll.devices.book` is the ledger of slices, classes, claims and taken devices, forked with its
    cluster; :mod:`~plimsoll.devices.taken` counts what claims take, and :mod:`~plimsoll.devices.holds` what
    is reserved for a future pod. ``plimsoll.scheduling.devices`` finds what another scheduler took as well.

What a pod wants:
    :mod:`~plimsoll.devices.pod_claims` finds its claims,
    :mod:`~plimsoll.devices.extended_resources` makes claims of extended resources,
    :mod:`~plimsoll.devices.requests` prepares them for the search, and
    :mod:`~plimsoll.devices.gang_claims` chooses for claims that members of a gang share.

Which devices it gets:
    :mod:`~plimsoll.devices.allocator` searches one node, under :mod:`~plimsoll.devices.constraints`,
    :mod:`~plimsoll.devices.amounts` and :mod:`~plimsoll.devices.search_limits`;
    :mod:`~plimsoll.devices.node_answers` keeps each node's result until something changes,
    :mod:`~plimsoll.devices.pod_devices` has them for one attempt, and
    :mod:`~plimsoll.devices.results` converts them into the status of claims.

What happens with the decision:
    :mod:`~plimsoll.devices.bookings` is the port of the plugin DynamicResources to what books and writes;
    :mod:`~plimsoll.devices.fork_bookings` books on a fork instead.

Moves:
    :mod:`~plimsoll.devices.fork_devices` lets devices follow the pods of a plan,
    :mod:`~plimsoll.devices.shared_claims` groups pods that only leave together, and the strategies count with
    :mod:`~plimsoll.devices.device_blocks`, :mod:`~plimsoll.devices.device_rows`,
    :mod:`~plimsoll.devices.device_use`, :mod:`~plimsoll.devices.device_room` and
    :mod:`~plimsoll.devices.devices_wanted`.

The operator writes claims in ``plimsoll.scheduling.devices``; ``plimsoll.cluster.device_objects`` applies
watched objects, and ``plimsoll.cluster.device_holds`` finds devices for reservations.
"""
