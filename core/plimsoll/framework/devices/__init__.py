"""Devices for authors of plugins: claims, the book of devices, and the search for devices."""

from plimsoll.devices.book import DeviceBook as DeviceBook
from plimsoll.devices.book import is_served_by_devices as is_served_by_devices
from plimsoll.devices.extended_resources import classes_by_resource as classes_by_resource
from plimsoll.devices.extended_resources import may_be_served as may_be_served
from plimsoll.devices.node_answers import ALL_OF_INVALID as ALL_OF_INVALID
from plimsoll.devices.node_answers import ALL_OF_UPDATED as ALL_OF_UPDATED
from plimsoll.devices.node_answers import INVALID as INVALID
from plimsoll.devices.node_answers import NOT_FREE as NOT_FREE
from plimsoll.devices.pod_claims import ClaimProblem as ClaimProblem
from plimsoll.devices.pod_claims import claims_of as claims_of
from plimsoll.devices.requests import MissingClassError as MissingClassError
from plimsoll.devices.requests import wanted_claim as wanted_claim
from plimsoll.devices.search_limits import STEPS_A_SECOND as STEPS_A_SECOND
from plimsoll.devices.taken import Taken as Taken
