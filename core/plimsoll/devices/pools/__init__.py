"""Pools of devices, as each node sees the published slices."""

from plimsoll.devices.pools.pool import NO_DRIVER as NO_DRIVER
from plimsoll.devices.pools.pool import DeviceID as DeviceID
from plimsoll.devices.pools.pool import Pool as Pool
from plimsoll.devices.pools.pool import PooledDevice as PooledDevice
from plimsoll.devices.pools.pool import PoolKey as PoolKey
from plimsoll.devices.pools.pool import PoolState as PoolState
from plimsoll.devices.pools.pool import node_key as node_key
from plimsoll.devices.pools.pool import pool_of as pool_of
