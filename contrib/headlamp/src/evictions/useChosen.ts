import { useHistory, useLocation } from 'react-router-dom';

/** A value that is kept in the address of the page; empty when nothing was chosen. */
export function useChosen(key: string): [string, (value: string) => void] {
  const history = useHistory();
  const { pathname, search } = useLocation();
  const choose = (value: string) => {
    const query = new URLSearchParams(search);
    if (value === '') {
      query.delete(key);
    } else {
      query.set(key, value);
    }
    history.replace({ pathname, search: query.toString() });
  };
  return [new URLSearchParams(search).get(key) ?? '', choose];
}
