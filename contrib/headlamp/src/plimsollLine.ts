/** The load line on a ship's hull, as the icon of the sidebar. Icons by name would be loaded from elsewhere. */
export const PLIMSOLL_LINE = {
  body: '<path fill="none" stroke="currentColor" stroke-width="2" d="M2 12h20M12 5a7 7 0 1 0 0 14a7 7 0 0 0 0-14"/>',
  width: 24,
  height: 24,
};
