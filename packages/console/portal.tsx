import './style/base.css';
import './style/parts.css';
import './style/pages.css';
import './style/relations.css';
import './style/portal.css';
import { createRoot } from 'react-dom/client';
import { Portal } from './portal/app.tsx';
import { openSession } from './portal/session.ts';

const container = document.getElementById('portal');
if (container === null) throw new Error('The page lacks its #portal element.');
openSession();
createRoot(container).render(<Portal />);
