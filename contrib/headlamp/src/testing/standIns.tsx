import type { ReactNode } from 'react';

/** Stand-ins for Headlamp's components: the same properties, plain elements. */
export function SectionBox({ title, children }: { title?: ReactNode; children?: ReactNode }) {
  return (
    <section>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

export function NameValueTable(props: {
  rows: { name: string; value?: ReactNode; hide?: boolean }[];
}) {
  const shown = props.rows.filter(each => !each.hide);
  return (
    <dl>
      {shown.map(each => (
        <div key={each.name}>
          <dt>{each.name}</dt>
          <dd>{each.value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function SimpleTable<Row>(props: {
  data: Row[] | null;
  emptyMessage?: string;
  columns: { label: string; getter: (row: Row) => ReactNode }[];
}) {
  if (!props.data?.length) {
    return <p>{props.emptyMessage}</p>;
  }
  return (
    <table>
      <tbody>
        {props.data.map((row, index) => (
          <tr key={index}>
            {props.columns.map(each => (
              <td key={each.label}>{each.getter(row)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export function StatusLabel({ title, children }: { title?: string; children?: ReactNode }) {
  return <span title={title}>{children}</span>;
}

export function Link({ routeName, children }: { routeName: string; children?: ReactNode }) {
  return <a href={`#${routeName}`}>{children}</a>;
}

export function DateLabel({ date }: { date: string }) {
  return <time>{date}</time>;
}
