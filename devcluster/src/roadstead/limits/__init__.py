"""Applies what a namespace sets for its objects: LimitRanges and ResourceQuotas."""
