//! The heap tuple header (`src/include/access/htup_details.h`), as offsets into an item.
